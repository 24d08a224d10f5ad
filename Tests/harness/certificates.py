"""Certificates for TLS upstreams, made once by the openssl command; they are valid for 127.0.0.1 only."""

import datetime
import pathlib
import shutil
import ssl
import subprocess
import tempfile
import threading

LOCK = threading.Lock()
MADE = {}


def available():
    return shutil.which("openssl") is not None


class Authority:
    """A test authority in a temporary directory; `file` is its certificate."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="conformance-certificates.")
        self.directory = pathlib.Path(self.folder.name)
        self.file = self.directory / "authority.pem"
        self.key = self.directory / "authority.key"
        self.other = None
        openssl(
            "req", "-x509", *NEW_KEY, "-keyout", self.key, "-out", self.file, "-days", "2", "-subj", "/CN=Authority",
            "-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign",
        )  # fmt: skip

    def issue(self, name, host="IP:127.0.0.1", days=(-1, 2)):
        """A certificate for this host, valid between these days from now; (certificate, key)."""
        certificate, key, request = (self.directory / f"{name}.{kind}" for kind in ("pem", "key", "csr"))
        openssl("req", "-new", *NEW_KEY, "-keyout", key, "-out", request, "-subj", f"/CN={name}")
        extensions = self.directory / f"{name}.ext"
        extensions.write_text(f"subjectAltName={host}\nbasicConstraints=CA:FALSE\n")
        database = self.directory / f"{name}.db"
        database.write_text("")
        configuration = self.directory / f"{name}.conf"
        configuration.write_text(
            f"[ca]\ndefault_ca=own\n[own]\ndatabase={database}\nnew_certs_dir={self.directory}\nrand_serial=yes\n"
            "default_md=sha256\npolicy=any\n[any]\ncommonName=supplied\n"
        )
        begin, end = (stamp(day) for day in days)
        openssl(
            "ca", "-batch", "-notext", "-config", configuration, "-cert", self.file, "-keyfile", self.key,
            "-in", request, "-out", certificate, "-startdate", begin, "-enddate", end, "-extfile", extensions,
        )  # fmt: skip
        return certificate, key

    def self_signed(self):
        certificate, key = self.directory / "own.pem", self.directory / "own.key"
        openssl(
            "req", "-x509", *NEW_KEY, "-keyout", key, "-out", certificate, "-days", "2", "-subj", "/CN=127.0.0.1",
            "-addext", "subjectAltName=IP:127.0.0.1",
        )  # fmt: skip
        return certificate, key


NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


def stamp(days):
    return (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=days)).strftime("%Y%m%d%H%M%SZ")


def openssl(*arguments):
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


def authority():
    """The authority with the file for an origin's `tls.caFile`."""
    with LOCK:
        if "authority" not in MADE:
            MADE["authority"] = Authority()
        return MADE["authority"]


def files(kind="good"):
    """Certificate and key of a server, made once: "good", "expired", "future", "wrong host" or "self-signed"."""
    own = authority()
    with LOCK:
        if kind not in MADE:
            MADE[kind] = {
                "good": lambda: own.issue("good"),
                "expired": lambda: own.issue("expired", days=(-9, -2)),
                "future": lambda: own.issue("future", days=(3, 9)),
                "wrong host": lambda: own.issue("wrong", host="DNS:other.example"),
                "self-signed": own.self_signed,
            }[kind]()
        return MADE[kind]


def server(kind="good", version=None):
    """A server's `SSLContext` with these files."""
    certificate, key = files(kind)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if version is not None:
        context.set_ciphers("ALL:@SECLEVEL=0")
        context.minimum_version = context.maximum_version = version
    context.load_cert_chain(certificate, key)
    return context


def client_context(authority, certificate=None):
    """A client's `SSLContext` for 127.0.0.1. `authority` is a file, `certificate` a pair of files."""
    context = ssl.create_default_context(cafile=authority)
    if certificate:
        context.load_cert_chain(*certificate)
    return context
