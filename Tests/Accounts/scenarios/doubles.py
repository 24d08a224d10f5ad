"""The mocks themselves, checked with the clients of their real counterparts: a mock that is too lenient or too strict
would make the other scenarios worthless."""

import time
import urllib.error
import urllib.request

from jose import SigningKey
from mocks.base import content
from mocks.links import Downloads
from mocks.metadata import ROLE_ARN, ContainerCredentials, InstanceMetadata, SecurityTokenService
from mocks.objects import SIZE, Accounts, ObjectStore
from mocks.tokens import AuthorizationServer

from . import scenario


def fetch(url, fields=None, data=None, method=None):
    """Status, header fields and body."""
    request = urllib.request.Request(url, data, fields or {}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=10) as response:
            return response.status, response.headers, response.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read()


@scenario(needs=["boto3"], brief=False)
def doubles_boto(t):
    """boto3 and botocore use the mocks of object store, STS, instance metadata and containers."""
    from botocore.credentials import InstanceMetadataFetcher
    from botocore.exceptions import ClientError

    from .paths import KEYS

    accounts = Accounts(t.vault)
    store, keys = t.mock(ObjectStore(accounts)), accounts.temporary()
    s3 = t.tools.client("s3", store.url, keys.access_key, keys.secret, keys.token)
    for key in KEYS:
        if key.startswith("/") or "//" in key or "/.." in key:
            continue
        body = s3.get_object(Bucket="media", Key=key)["Body"].read()
        t.check(body == content(key, SIZE), f"boto3 reads other bytes for {key!r}")
    part = s3.get_object(Bucket="media", Key="a b.bin", Range="bytes=5-9")["Body"].read()
    t.equal(part, content("a b.bin", SIZE)[5:10], "a range of boto3")
    sts = t.mock(SecurityTokenService(accounts, external_id="media-7", identity=t.vault.new("webIdentity")))
    permanent = accounts.permanent()
    client = t.tools.client("sts", sts.url, permanent.access_key, permanent.secret)
    role = client.assume_role(RoleArn=ROLE_ARN, RoleSessionName="larder", ExternalId="media-7")["Credentials"]
    t.equal(role["SecretAccessKey"], accounts.issued[-1].secret, "the secret of AssumeRole")
    client.assume_role_with_web_identity(RoleArn=ROLE_ARN, RoleSessionName="larder", WebIdentityToken=sts.identity)
    metadata = t.mock(InstanceMetadata(accounts))
    found = InstanceMetadataFetcher(num_attempts=1, base_url=metadata.url + "/").retrieve_iam_role_credentials()
    t.equal(found.get("secret_key"), accounts.issued[-1].secret, "the secret of the instance")
    wrong = {
        "SignatureDoesNotMatch": (keys.access_key, "x" * 40, keys.token), "InvalidAccessKeyId": ("AKIAUNKNOWN", "x", None),
        "InvalidToken": (keys.access_key, keys.secret, "x" * 20),
    }  # fmt: skip
    for code, values in wrong.items():
        try:
            t.tools.client("s3", store.url, *values).get_object(Bucket="media", Key="a.bin")
            t.check(False, f"the store accepts a request that should cause {code}")
        except ClientError as error:
            t.equal(error.response["Error"]["Code"], code, "the code of a refusal")


@scenario(needs=["openssl"])
def doubles_strict(t):
    """The mocks refuse requests without sessions, tokens and signatures."""
    accounts = Accounts(t.vault)
    metadata = t.mock(InstanceMetadata(accounts))
    roles = f"{metadata.url}/latest/meta-data/iam/security-credentials/"
    t.equal(fetch(roles)[0], 401, "the status of IMDSv1")
    t.equal(fetch(f"{metadata.url}/latest/api/token", method="PUT")[0], 400, "the status of a session without a lifetime")
    container = t.mock(ContainerCredentials(accounts, t.vault.new("containerToken")))
    t.equal(fetch(container.url + container.PATH)[0], 401, "the status of a container without a token")
    store = t.mock(ObjectStore(accounts))
    t.equal(fetch(f"{store.url}/media/a.bin")[0], 403, "the status of an object without a signature")
    key = SigningKey(t.directory, "key-1")
    authority = t.mock(AuthorizationServer(t.vault, verify_assertion=key.verify))
    token = key.sign({"exp": int(time.time()) + 60, "aud": f"{authority.url}/token"})
    t.equal(key.verify(token)["aud"], f"{authority.url}/token", "the claims of a verified token")
    for text in (token[:-4] + "AAAA", token.replace(".", "..", 1), "", "a.b.c"):
        try:
            key.verify(text)
            t.check(False, f"the token {text[:20]} is accepted")
        except ValueError:
            t.check(True, "")
    downloads = t.mock(Downloads(t.directory, t.vault))
    (t.directory / "f.bin").write_bytes(b"0123456789")
    link = downloads.link("f.bin")
    t.equal(fetch(link, {"Range": "bytes=2-4"})[2], b"234", "the bytes of a link")
    t.equal(fetch(link.replace("exp=", "exp=9"))[0], 403, "the status of an altered link")
    downloads.expire()
    t.equal(fetch(link)[0], 410, "the status of an expired link")


@scenario(needs=["nginx"])
def doubles_nginx(t):
    """nginx sends the files of links, with ranges, and refuses expired links."""
    from harness.process import Nginx

    site, place = t.directory / "site", t.directory / "nginx"
    for folder in (t.directory, site, place):
        folder.mkdir(exist_ok=True)
        folder.chmod(0o755)
    (site / "a film.bin").write_bytes(content("x", SIZE))
    downloads = t.mock(Downloads(site, t.vault))
    nginx = Nginx(place, downloads.nginx())
    t.processes.append(nginx)
    downloads.is_accelerated, downloads.front = True, f"127.0.0.1:{nginx.port}"
    link = downloads.link("a film.bin")
    status, fields, body = fetch(link, {"Range": "bytes=100-199"})
    t.equal((status, body), (206, content("x", SIZE)[100:200]), "status and bytes of a range")
    t.check(fields["ETag"], "the answer has no entity tag")
    downloads.expire()
    t.equal(fetch(link)[0], 410, "the status of an expired link")


@scenario(needs=["moto"], brief=False)
def doubles_moto(t):
    """moto refuses wrong signatures, so that its scenarios prove something."""
    from botocore.exceptions import ClientError

    moto = t.tools.Moto(t)
    moto.s3.put_object(Bucket=moto.bucket, Key="a b.bin", Body=b"abc")
    t.equal(moto.s3.get_object(Bucket=moto.bucket, Key="a b.bin")["Body"].read(), b"abc", "the bytes of moto")
    try:
        t.tools.client("s3", moto.url, moto.access_key, "x" * 40).get_object(Bucket=moto.bucket, Key="a b.bin")
        t.check(False, "moto accepts a wrong signature")
    except ClientError as error:
        t.equal(error.response["Error"]["Code"], "SignatureDoesNotMatch", "the code of the refusal")


@scenario(needs=["seaweedfs"], brief=False)
def doubles_seaweed(t):
    """SeaweedFS refuses wrong signatures."""
    from botocore.exceptions import ClientError

    weed = t.tools.SeaweedFS(t)
    t.equal(weed.s3.get_object(Bucket=weed.bucket, Key="ready")["Body"].read(), b"ready", "the bytes of SeaweedFS")
    try:
        t.tools.client("s3", weed.url, weed.access_key, "x" * 40).get_object(Bucket=weed.bucket, Key="ready")
        t.check(False, "SeaweedFS accepts a wrong signature")
    except ClientError as error:
        t.equal(error.response["Error"]["Code"], "SignatureDoesNotMatch", "the code of the refusal")


@scenario(needs=["oidc", "pyjwt"], brief=False)
def doubles_oidc(t):
    """The OpenID provider issues tokens without kid that PyJWT verifies with its only key, which states no algorithm."""
    import jwt

    provider = t.tools.OpenIDProvider(t)
    token = t.vault.keep("readerJWT", provider.token("larder-client"))
    (key,) = jwt.PyJWKClient(provider.discovery["jwks_uri"]).get_signing_keys()
    claims = jwt.decode(token, key, ["RS256"], audience="larder-client", issuer=provider.discovery["issuer"])
    t.equal((claims["sub"], claims.get("permission")), ("player-7", "read"), "subject and permission")


@scenario(needs=["gcs", "openssl"], brief=False)
def doubles_gcs(t):
    """fake-gcs-server behind nginx refuses requests without a token."""
    from mocks.tokens import Resources

    authority = t.mock(AuthorizationServer(t.vault))
    storage = t.tools.CloudStorage(t, t.mock(Resources(authority)).url, {"film.bin": content("film.bin", SIZE)})
    t.equal(fetch(f"{storage.url}/media/film.bin")[0], 401, "the status without a token")
    authority.issue()
    token = next(iter(authority.valid))
    for path in ("/media/film.bin", "/storage/v1/b/media/o/film.bin?alt=media"):
        status, _, body = fetch(storage.url + path, {"Authorization": f"Bearer {token}"})
        t.equal((status, body == content("film.bin", SIZE)), (200, True), f"status and bytes of {path}")
