"""An upstream over TLS, with or without HTTP/2: nginx with a self-signed certificate."""

from dataclasses import dataclass

from harness import certificates, ranges
from harness.process import Nginx


@dataclass
class Answer:
    """One line of the access log."""

    #: Serial number of the connection.
    connection: int
    protocol: str
    path: str
    first: int
    #: End of the requested range, exclusive.
    last: int
    #: Body bytes that were sent.
    sent: int

    @property
    def run(self):
        return self.first, self.first + self.sent


class SecureServer(Nginx):
    """Serves the files of a directory; below `/whole/` without ranges, below `/narrow/` from the upstream `narrow`.

    A connection is closed after `requests` requests.
    """

    def __init__(self, directory, media, http2=True, narrow=None, requests=10_000_000):
        self.answer_log = directory / "answers.log"
        self.certificate, key = certificates.files("self-signed")
        narrow = narrow and f"""
            location /narrow/ {{ proxy_pass http://127.0.0.1:{narrow.port}/; proxy_buffering off; }}
        """
        super().__init__(
            directory,
            f"""
                log_format answers
                    '$connection $server_protocol $request_method $uri $http_range $status $body_bytes_sent';
                access_log {self.answer_log} answers; keepalive_requests {requests};
                add_header Cache-Control max-age=86400; add_header X-Connection $connection;
                server {{
                    listen 127.0.0.1:{{port}} ssl {"http2" if http2 else ""} backlog=4096;
                    ssl_certificate {self.certificate}; ssl_certificate_key {key};
                    root {media};
                    location /whole/ {{ alias {media}/; max_ranges 0; }}
                    {narrow or ""}
                }}
            """,
        )

    @property
    def settings(self):
        """The settings of Larder for this upstream."""
        return [
            f"origins.media.baseURL=https://127.0.0.1:{self.port}", f"origins.media.tls.caFile={self.certificate}"
        ]  # fmt: skip

    def answers(self, length, path=None):
        """The responses 200 and 206 for files of that length."""
        found = []
        for line in self.answer_log.read_text().splitlines():
            connection, protocol, method, uri, header, status, sent = line.split()
            if method == "GET" and status in ("200", "206") and path in (None, uri):
                first, last = ranges.run_of(header, length) if status == "206" else (0, length)
                found.append(Answer(int(connection), protocol, uri, first, last, int(sent)))
        return found
