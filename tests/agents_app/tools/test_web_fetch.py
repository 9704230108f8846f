"""web_fetch against a real HTTP server on the loopback interface."""

import asyncio
import gzip
import http.server
import socket
import threading
import time
import zlib
from collections.abc import Iterator

import httpx2
import pytest

from agents_app.tools import web_address
from agents_app.tools.base import SandboxRules
from agents_app.tools.web_address import is_public
from agents_app.tools.web_body import decode, read_head
from tests.agents_app.tools.conftest import Bench

PAGES_TO: dict[str, str] = {}
BOMB = gzip.compress(b" " * 60_000_000, 1)
PAGES: dict[str, tuple[str, bytes]] = {
    "/plain": ("text/plain; charset=utf-8", "grüße 😀".encode()),
    "/latin": ("text/plain; charset=iso-8859-1", "grüße".encode("latin-1")),
    "/meta": ("text/html", '<html><meta charset="gb2312">你好'.encode("gb2312")),
    "/wrong": ("text/plain; charset=no-such-charset", "grüße".encode()),
    "/codec": ("text/plain; charset=zlib", b"abc"),
    "/bad": ("text/plain", b"a\xffb"),
    "/utf16": ("text/plain", "hé".encode("utf-16")),
    "/empty": ("text/plain", b""),
    "/long": ("text/plain", b"x" * 200_000),
    "/exact": ("text/plain", b"x" * 50 * 1024),
    "/picture": ("image/png", b"\x89PNG\r\n\x1a\n\0\0\0" + b"x" * 100),
}


class Handler(http.server.BaseHTTPRequestHandler):
    """Pages above, echo, redirects and the ways a server can be difficult."""

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = self.path
        self.server.seen.append((self.command, path, dict(self.headers)))  # type: ignore[attr-defined]
        if path in PAGES:
            self._page(*PAGES[path])
        elif path.startswith("/hop/"):
            left = int(path.rsplit("/", 1)[1])
            self._redirect(f"/hop/{left - 1}" if left else "/plain")
        elif path in PAGES_TO:
            self._redirect(PAGES_TO[path])
        elif path == "/away":
            self._redirect("file:///etc/passwd")
        elif path == "/loop":
            self._redirect("/loop")
        elif path == "/gzip":
            self._page("text/plain", gzip.compress(b"packed"), "gzip")
        elif path == "/deflate":
            self._page("text/plain", zlib.compress(b"raw packed")[2:-4], "deflate")
        elif path == "/bomb":
            self._page("text/plain", BOMB, "gzip")
        elif path == "/brotli":
            self._page("text/plain", b"???", "br")
        elif path == "/broken":
            self._page("text/plain", b"not gzip at all", "gzip")
        elif path == "/slow":
            self.send_response(200)
            self.end_headers()
            for _ in range(100):
                self.wfile.write(b"x")
                time.sleep(0.1)
        else:
            self._page("text/plain", b"nothing here", status=404)

    do_POST = do_GET

    def _page(self, kind: str, body: bytes, encoding: str = "", status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        if encoding:
            self.send_header("Content-Encoding", encoding)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _redirect(self, to: str) -> None:
        self.send_response(302)
        self.send_header("Location", to)
        self.end_headers()

    def log_message(self, *args: object) -> None:
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away in mid-answer is what some tests are about."""


@pytest.fixture
def bench(bench: Bench) -> Bench:
    """The server of these tests is on a loopback address."""
    return bench.having(private_addresses=True)


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(("127.0.0.1", 0), Handler) as running:
        running.seen = []  # type: ignore[attr-defined]
        threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        yield running
        running.shutdown()


@pytest.fixture
def base(server: Server) -> str:
    return f"http://127.0.0.1:{server.server_address[1]}"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/plain", "Status: 200\nContent-Type: text/plain; charset=utf-8\n\ngrüße 😀"),
        ("/latin", "Status: 200\nContent-Type: text/plain; charset=iso-8859-1\n\ngrüße"),
        ("/meta", 'Status: 200\nContent-Type: text/html\n\n<html><meta charset="gb2312">你好'),
        ("/wrong", "Status: 200\nContent-Type: text/plain; charset=no-such-charset\n\ngrüße"),
        ("/codec", "Status: 200\nContent-Type: text/plain; charset=zlib\n\nabc"),
        ("/bad", "Status: 200\nContent-Type: text/plain\n\na\ufffdb"),
        ("/utf16", "Status: 200\nContent-Type: text/plain\n\nhé"),
        ("/empty", "Status: 200\nContent-Type: text/plain\n\n"),
        ("/gzip", "Status: 200\nContent-Type: text/plain\n\npacked"),
        ("/deflate", "Status: 200\nContent-Type: text/plain\n\nraw packed"),
        ("/missing", "Status: 404\nContent-Type: text/plain\n\nnothing here"),
        ("/exact", "Status: 200\nContent-Type: text/plain\n\n" + "x" * 50 * 1024),
        ("/long", "Status: 200\nContent-Type: text/plain\n\n" + "x" * 50 * 1024 + "\n... [truncated to 50KB]"),
        ("/picture", "Status: 200\nContent-Type: image/png\n\n(a binary body, not shown; 111 bytes)"),
        ("/brotli", "Status: 200\nContent-Type: text/plain\n\n(the body is packed as br and cannot be read here)"),
    ],
)
async def test_fetching(bench: Bench, base: str, path: str, expected: str) -> None:
    assert await bench.text("web_fetch", url=base + path) == expected


async def test_a_small_answer_that_unpacks_to_a_huge_one_is_bounded(bench: Bench, base: str) -> None:
    text = await bench.text("web_fetch", url=base + "/bomb")
    assert text.endswith("... [truncated to 50KB]") and len(text) < 52_000
    assert "(the body is damaged" in await bench.text("web_fetch", url=base + "/broken")


async def test_redirects(bench: Bench, base: str) -> None:
    text = await bench.text("web_fetch", url=base + "/hop/4")
    assert text.startswith("Status: 200\n") and f"Redirected to: {base}/plain" in text and text.endswith("grüße 😀")
    assert "more than 5 redirects" in await bench.error("web_fetch", url=base + "/hop/5")
    assert "more than 5 redirects" in await bench.error("web_fetch", url=base + "/loop")
    assert "only http and https" in await bench.error("web_fetch", url=base + "/away")


async def test_method_and_headers(bench: Bench, base: str, server: Server) -> None:
    await bench.text(
        "web_fetch", url=base + "/plain", method="post", headers={"X-One": "1", "user-agent": "me", "X-Two": 2}
    )
    ((method, path, headers),) = server.seen  # type: ignore[attr-defined]
    assert (method, path, headers["X-One"], headers["X-Two"]) == ("POST", "/plain", "1", "2")
    assert [value for name, value in headers.items() if name.lower() == "user-agent"] == ["me"]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"url": "ftp://example.org/x"}, "only http and https"),
        ({"url": "file:///etc/passwd"}, "only http and https"),
        ({"url": "nonsense"}, "only http and https"),
        ({"url": "http://"}, "Error: "),
        ({"url": "http://[::1"}, "this request cannot be made"),
        ({"url": "http://127.0.0.1:99999/"}, "a port that does not exist"),
        ({"url": "{base}/plain", "method": "GE T\r\nX: y"}, "this request cannot be made"),
        ({"url": "{base}/plain", "headers": {"X": "a\r\nB: c"}}, "this request cannot be made"),
        ({"url": "{base}/plain", "headers": {"X": ["a"]}}, "must have a text as its value"),
        ({"url": "http://127.0.0.1:9/"}, "GET http://127.0.0.1:9/ failed: "),
        ({"url": "http://no-such-host.invalid/"}, "failed: "),
    ],
)
async def test_requests_that_cannot_be_made(bench: Bench, base: str, args: dict, message: str) -> None:
    assert message in await bench.error("web_fetch", **{**args, "url": args["url"].replace("{base}", base)})


async def test_the_time_limit_is_for_the_whole_request(bench: Bench, base: str) -> None:
    await bench.text("web_fetch", url=base + "/plain")  # the client is loaded
    begun = time.monotonic()
    text = await bench.within(web_fetch_timeout_s=0.5).error("web_fetch", url=base + "/slow")
    assert text == "__TOOL_ERROR__\nError: Request timed out after 0.5 seconds"
    assert time.monotonic() - begun < 15


async def test_cancelling_ends_the_request_at_once(bench: Bench, base: str) -> None:
    task = asyncio.create_task(bench.tool("web_fetch", url=base + "/slow"))
    await asyncio.sleep(0.5)
    task.cancel()
    async with asyncio.timeout(8):
        with pytest.raises(asyncio.CancelledError):
            await task


LEVELS = ("full", "workspace", "readonly")


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1", "localhost", "localhost.", "LOCALHOST", "127.1", "2130706433", "0x7f000001", "0177.0.0.1",
        "127.0.0.1.", "0.0.0.0", "0", "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]", "[::127.0.0.1]", "169.254.169.254", "[fe80::1%25lo]", "user@127.0.0.1", "①27.0.0.1",
    ],
)  # fmt: skip
async def test_only_the_public_internet_is_reached(bench: Bench, server: Server, level, host: str) -> None:
    closed = bench.having(private_addresses=False, access=level, sandboxed=True)
    text = await closed.error("web_fetch", url=f"http://{host}:{server.server_address[1]}/plain")
    # Some forms are no address at all to this system's resolver; none may lead to the server.
    assert "general.web_fetch.allow_private" in text or "failed: " in text or "cannot be made" in text
    if host in ("127.0.0.1", "localhost", "2130706433", "0x7f000001", "0.0.0.0", "[::1]", "169.254.169.254"):
        assert "is not on the public internet" in text
    assert server.seen == []  # type: ignore[attr-defined]


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[list[str]]]:
    """Host names with the answers they give, one list of addresses after the other; the last one stays."""
    answers: dict[str, list[list[str]]] = {}
    ask = socket.getaddrinfo

    def resolve(host, port, *rest, **more):
        name = host.decode() if isinstance(host, bytes) else host
        if name not in answers:
            return ask(host, port, *rest, **more)
        given = answers[name].pop(0) if len(answers[name]) > 1 else answers[name][0]
        return [entry for address in given for entry in ask(address, port, *rest, **more)]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    return answers


@pytest.mark.parametrize("level", LEVELS)
async def test_one_private_address_among_several_is_enough(bench: Bench, names, server: Server, level) -> None:
    names["mixed.test"] = [["203.0.113.7", "127.0.0.1"], ["8.8.8.8", "127.0.0.1"]]
    closed = bench.having(private_addresses=False, access=level, sandboxed=True)
    for _ in range(2):
        text = await closed.error("web_fetch", url=f"http://mixed.test:{server.server_address[1]}/plain")
        assert "mixed.test is not on the public internet" in text
    assert server.seen == []  # type: ignore[attr-defined]


async def test_the_address_that_was_checked_is_the_one_that_is_asked(names) -> None:
    """A name that answers with another address the second time is not asked a second time."""
    names["turncoat.test"] = [["8.8.8.8"], ["127.0.0.1"]]
    asked: list[httpx2.Request] = []

    def note(request: httpx2.Request) -> httpx2.Response:
        asked.append(request)
        return httpx2.Response(200, text="fine")

    async with httpx2.AsyncClient(transport=web_address.PublicOnly(httpx2.MockTransport(note))) as client:
        await client.get("https://turncoat.test/plain")
    assert [(str(request.url), request.headers["host"]) for request in asked] == [
        ("https://8.8.8.8/plain", "turncoat.test")
    ]
    assert asked[0].extensions["sni_hostname"] == "turncoat.test"
    assert names["turncoat.test"] == [["127.0.0.1"]]


async def test_a_redirect_to_a_private_address_is_refused(
    bench: Bench, server: Server, names, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first server counts as public here, what it redirects to does not."""
    names["public.test"] = [["127.0.0.1"]]
    port = server.server_address[1]
    PAGES_TO["/private"] = f"http://localhost:{port}/plain"
    checked = web_address.is_public
    hops: list[str] = []

    def first_is_public(address: str) -> bool:
        hops.append(address)
        return len(hops) == 1 or checked(address)

    monkeypatch.setattr(web_address, "is_public", first_is_public)
    closed = bench.having(private_addresses=False, access="workspace")
    text = await closed.error("web_fetch", url=f"http://public.test:{port}/private")
    assert "localhost is not on the public internet" in text
    assert [path for _, path, _ in server.seen] == ["/private"]  # type: ignore[attr-defined]


@pytest.mark.parametrize(("level", "through"), [("full", True), ("workspace", False), ("readonly", False)])
async def test_a_proxy_is_used_at_full_access_only_and_never_for_private_addresses(
    bench: Bench, server: Server, monkeypatch: pytest.MonkeyPatch, level, through: bool
) -> None:
    for name in ("NO_PROXY", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{server.server_address[1]}")
    closed = bench.having(private_addresses=False, access=level, sandboxed=True).within(web_fetch_timeout_s=5)
    assert "not on the public internet" in await closed.error("web_fetch", url="http://127.0.0.1:1/plain")
    assert server.seen == []  # type: ignore[attr-defined]
    result = await closed.tool("web_fetch", url="http://only-the-proxy-knows.invalid/plain")
    assert ("Status: 404" in result.text) is through
    assert bool(server.seen) is through  # type: ignore[attr-defined]


async def test_what_is_filled_in_reaches_the_server_and_no_message(bench: Bench, base: str, server: Server) -> None:
    key = "k3y-value"
    filling = bench.having(fill_in=lambda text: text.replace("<key>", key))
    await filling.text("web_fetch", url=f"{base}/missing?token=<key>", headers={"X-Key": "<key>"})
    ((_, path, headers),) = server.seen  # type: ignore[attr-defined]
    assert path.endswith(f"token={key}") and headers["X-Key"] == key
    for url in ("http://127.0.0.1:9/<key>", "ftp://x/<key>", "http://[<key>", "http://127.0.0.1:99999/<key>"):
        text = await filling.error("web_fetch", url=url)
        assert key not in text


async def test_readonly_fetches_only_where_there_is_a_sandbox(bench: Bench, base: str) -> None:
    assert "may only read files" in await bench.at("readonly").error("web_fetch", url=base + "/plain")
    assert "Status: 200" in await bench.having(access="readonly", sandboxed=True).text("web_fetch", url=base + "/plain")


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("8.8.8.8", True), ("2606:4700::1", True), ("127.0.0.1", False), ("10.1.2.3", False), ("192.168.0.1", False),
        ("169.254.169.254", False), ("100.64.0.1", False), ("192.0.0.8", False),
        ("0.0.0.0", False), ("::1", False), ("fe80::1%eth0", False),
        ("fd00::1", False), ("::ffff:10.0.0.1", False), ("2002:7f00:1::", False), ("224.0.0.1", False),
        ("64:ff9b::a01:203", False), ("64:ff9b::808:808", True), ("fec0::1", False), ("::10.0.0.1", False),
        ("::", False), ("ff02::1", False), ("255.255.255.255", False), ("::ffff:8.8.8.8", True),
    ],
)  # fmt: skip
def test_public_addresses(address: str, public: bool) -> None:
    assert is_public(address) is public


async def test_P10_a_body_that_comes_byte_by_byte_is_the_same_text() -> None:
    body = gzip.compress("多个 bytes 😀".encode())

    async def single():
        for index in range(len(body)):
            yield body[index : index + 1]

    head, more = await read_head(single(), "gzip", 1000)
    assert decode(head, "text/plain") == "多个 bytes 😀" and not more


async def test_a_header_stays_with_the_server_it_was_for(bench: Bench, base: str, server: Server) -> None:
    port = server.server_address[1]
    PAGES_TO["/elsewhere"] = f"http://localhost:{port}/plain"
    headers = {"X-Api-Key": "k3y", "Authorization": "Bearer k3y", "Cookie": "k3y", "Accept-Language": "de"}
    await bench.text("web_fetch", url=f"{base}/elsewhere", headers=headers)
    (_, _, first), (_, path, second) = server.seen  # type: ignore[attr-defined]
    assert list(first.values()).count("k3y") == 2 and path == "/plain"
    assert "k3y" not in str(second) and second["Accept-Language"] == "de"
    PAGES_TO["/here"] = "/plain"
    await bench.text("web_fetch", url=f"{base}/here", headers=headers)
    assert server.seen[-1][2]["X-Api-Key"] == "k3y", "another page of the same server"  # type: ignore[attr-defined]


@pytest.mark.parametrize("level", ["workspace", "readonly"])
async def test_without_a_network_nothing_is_fetched(bench: Bench, base: str, server: Server, level) -> None:
    closed = bench.having(access=level, sandboxed=True, rules=SandboxRules(network=False))
    assert "no network" in await closed.error("web_fetch", url=base + "/plain")
    assert server.seen == []  # type: ignore[attr-defined]


async def test_readonly_sends_nothing(bench: Bench, base: str, server: Server) -> None:
    reading = bench.having(access="readonly", sandboxed=True)
    assert "may only read" in await reading.error("web_fetch", url=base + "/plain", method="post")
    assert server.seen == []  # type: ignore[attr-defined]
    await reading.text("web_fetch", url=base + "/plain", method="head")
    assert [method for method, _, _ in server.seen] == ["HEAD"]  # type: ignore[attr-defined]
