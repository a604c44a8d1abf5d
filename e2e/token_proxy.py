"""A proxy on loopback that adds our token, for clients that cannot send one."""

import threading
from contextlib import suppress
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

_TIMEOUT_S = 60
# Headers about one connection only, which are not passed on.
_HOP_HEADERS = {"connection", "keep-alive", "transfer-encoding"}


class TokenProxy:
    """Passes requests on to a server of ours, unchanged apart from the token."""

    def __init__(self, port: int, token: str) -> None:
        class Passing(_Passing):
            target, authorization = port, f"Bearer {token}"

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Passing)
        self._server.daemon_threads = True
        Passing.own_port = self._server.server_port

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/mcp"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Passing(BaseHTTPRequestHandler):
    target: int
    own_port: int
    authorization: str

    def do_POST(self) -> None:
        self._pass_on()

    def do_GET(self) -> None:
        self._pass_on()

    def do_DELETE(self) -> None:
        self._pass_on()

    def _pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        asked = HTTPConnection("127.0.0.1", self.target, timeout=_TIMEOUT_S)
        asked.putrequest(
            self.command, self.path, skip_host=True, skip_accept_encoding=True
        )
        for name, value in self.headers.items():
            if name.lower() not in _HOP_HEADERS:
                asked.putheader(name, self._to_target(value))
        asked.putheader("Authorization", self.authorization)
        asked.endheaders(body)
        answer = asked.getresponse()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in _HOP_HEADERS:
                self.send_header(name, value)
        self.end_headers()
        # Passed on as it comes: a stream of events stays open until one side closes it.
        with suppress(OSError, HTTPException):
            while some := answer.read1(65_536):
                self.wfile.write(some)
                self.wfile.flush()
        asked.close()

    def _to_target(self, value: str) -> str:
        """Replace our own address with the server's; a foreign one stays as it is."""
        return value.replace(f":{self.own_port}", f":{self.target}")

    def log_message(self, *words: object) -> None:
        pass
