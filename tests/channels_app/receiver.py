"""A receiver of webhooks on the loopback address: keeps what it was sent and answers as a test tells it."""

import base64
import hashlib
import hmac
import json
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class Posted:
    """One request as it came. Header names in lower case."""

    path: str
    headers: dict[str, str]
    body: bytes
    at: float = field(default_factory=time.monotonic)

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def is_signed_with(self, secret: str) -> bool:
        """Told from the specification, with nothing of the code under test."""
        key = base64.b64decode(secret[len("whsec_") :])
        content = self.headers["webhook-id"] + "." + self.headers["webhook-timestamp"] + "." + self.body.decode()
        digest = hmac.new(key, content.encode(), hashlib.sha256).digest()
        return self.headers["webhook-signature"] == "v1," + base64.b64encode(digest).decode()


@dataclass(frozen=True)
class Reply:
    """delay: seconds before the status. size: bytes of the body, sent in pieces; stalls: it never ends."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    size: int = 2
    stalls: bool = False


class Receiver(ThreadingHTTPServer):
    """replies: by path, the next first; the last one of a path holds for ever, and without any all is well."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.posted: list[Posted] = []
        self.replies: dict[str, list[Reply]] = {}
        self.sent_bytes = 0
        self.guard = threading.Lock()
        self.closing = threading.Event()

    def url(self, path: str = "/hook") -> str:
        return f"http://127.0.0.1:{self.server_address[1]}{path}"

    def reply_to(self, path: str) -> Reply:
        with self.guard:
            waiting = self.replies.get(path.partition("?")[0], [])
            return waiting.pop(0) if len(waiting) > 1 else (waiting or [Reply()])[0]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is what some tests are about."""


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        with self.server.guard:
            self.server.posted.append(Posted(self.path, headers, body))
        reply = self.server.reply_to(self.path)
        self.server.closing.wait(reply.delay)
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(reply.size))
        self.end_headers()
        left = reply.size
        while left > 0 and not self.server.closing.is_set():
            piece = min(left, 16_384)
            self.wfile.write(b"x" * piece)
            self.server.sent_bytes += piece
            left -= piece
            if reply.stalls:
                self.server.closing.wait(60)

    do_GET = do_POST

    def log_message(self, format: str, *args: Any) -> None:
        pass


def encrypt(server: Receiver, folder: Path) -> Path:
    """From now on it speaks TLS, with a certificate that it signed itself. Returns the certificate's file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    certificate, private = folder / "certificate.pem", folder / "key.pem"
    certificate.write_bytes(made.public_bytes(Encoding.PEM))
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, private)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    return certificate


@contextmanager
def receiver(port: int = 0) -> Iterator[Receiver]:
    server = Receiver(port)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.closing.set()
        server.shutdown()
        server.server_close()
        thread.join(5)
