"""The address of Redis in the forms that different clients want. Pure."""

from urllib.parse import parse_qsl, quote, urlencode, urlsplit


def celery_broker_url(url: str) -> str:
    """The same server in the form that Celery's transport understands."""
    parts = urlsplit(url)
    if parts.scheme == "unix":
        options = dict(parse_qsl(parts.query))
        login = f":{quote(options['password'], safe='')}@" if "password" in options else ""
        return f"redis+socket://{login}{parts.path}?" + urlencode({"virtual_host": options.get("db", "0")})
    if parts.scheme == "rediss" and "ssl_cert_reqs" not in parts.query:
        return url + ("&" if parts.query else "?") + "ssl_cert_reqs=required"
    return url
