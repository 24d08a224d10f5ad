"""A receiver of webhooks that checks each signature with an implementation of its own, by the authors of the standard."""

import base64
import http.server
import json
import secrets
import threading
from dataclasses import dataclass

from standardwebhooks import Webhook

from harness.process import free_port


def new_secret():
    return "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()


@dataclass
class Message:
    """A request that the receiver has accepted or refused."""

    path: str
    headers: dict
    body: str
    #: The status of the response.
    status: int
    #: The exception of the check; None: the signature is right.
    fault: Exception

    @property
    def identifier(self):
        return self.headers.get("webhook-id")

    @property
    def document(self):
        return json.loads(self.body)

    @property
    def type(self):
        return self.document["type"]

    @property
    def data(self):
        return self.document["data"]

    def is_signed_by(self, secret):
        """Whether one of the signatures is that of this secret."""
        try:
            Webhook(secret).verify(self.body, self.headers)
            return True
        except Exception:  # noqa: BLE001  any exception of the package is a refusal
            return False


class Receiver:
    """An HTTP server on a port of loopback that can be closed and opened again. `answer(message)` returns the status, or
    status, header fields and body."""

    def __init__(self, secret, answer=lambda message: 204):
        self.secret, self.answer, self.port = secret, answer, free_port()
        self.messages, self.lock, self.server = [], threading.Lock(), None
        self.open()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/hook"

    def open(self):
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                self.respond(receiver.received(self.path, dict(self.headers.items()), body))

            def do_GET(self):
                self.respond(receiver.received(self.path, dict(self.headers.items()), "{}"))

            def respond(self, answer):
                status, fields, body = answer
                try:
                    self.send_response(status)
                    for name, value in {"Content-Length": len(body), **fields}.items():
                        self.send_header(name, str(value))
                    self.end_headers()
                    self.wfile.write(body)
                except OSError:
                    self.close_connection = True  # the service has closed the connection

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            allow_reuse_address = True
            daemon_threads = True

        self.server = Server(("127.0.0.1", self.port), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def received(self, path, headers, body):
        headers = {name.lower(): value for name, value in headers.items()}
        fault = None
        try:
            Webhook(self.secret).verify(body, headers)
        except Exception as error:  # noqa: BLE001  any exception of the package is a refusal
            fault = error
        message = Message(path, headers, body, 0, fault)
        answer = self.answer(message)
        status, fields, content = answer if isinstance(answer, tuple) else (answer, {}, b"")
        message.status = status
        with self.lock:
            self.messages.append(message)
        return status, fields, content

    def of(self, kind, status=range(200, 300)):
        """The accepted messages of a kind."""
        with self.lock:
            return [each for each in self.messages if each.type == kind and each.status in status]
