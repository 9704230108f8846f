"""web_fetch against a real HTTP server on the loopback interface."""

import asyncio
import gzip
import http.server
import threading
import time
import zlib
from collections.abc import Iterator

import pytest

from agents_app.tools.web_address import is_public
from agents_app.tools.web_body import decode, read_head
from tests.agents_app.tools.conftest import Bench

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

    def do_GET(self) -> None:
        path = self.path
        self.server.seen.append((self.command, path, dict(self.headers)))  # type: ignore[attr-defined]
        if path in PAGES:
            self._page(*PAGES[path])
        elif path.startswith("/hop/"):
            left = int(path.rsplit("/", 1)[1])
            self._redirect(f"/hop/{left - 1}" if left else "/plain")
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


async def test_limited_access_reaches_only_the_public_internet(bench: Bench, base: str, server: Server) -> None:
    low = bench.at("workspace")
    for url in (base + "/plain", base.replace("127.0.0.1", "localhost"), "http://[::1]:1/", "http://0.0.0.0/"):
        assert "is not on the public internet" in await low.error("web_fetch", url=url)
    assert server.seen == []  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("8.8.8.8", True), ("2606:4700::1", True), ("127.0.0.1", False), ("10.1.2.3", False), ("192.168.0.1", False),
        ("169.254.169.254", False), ("100.64.0.1", False), ("0.0.0.0", False), ("::1", False), ("fe80::1%eth0", False),
        ("fd00::1", False), ("::ffff:10.0.0.1", False), ("2002:7f00:1::", False), ("224.0.0.1", False),
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
