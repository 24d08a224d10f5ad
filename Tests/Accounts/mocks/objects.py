"""Object stores: one that verifies Signature Version 4 (S3 and its kin), and one for shared access signatures."""

import threading
import time
import uuid
import xml.sax.saxutils
from dataclasses import dataclass

from sigv4 import Refused, Verifier

from .base import Answer, Mock, content, serve

SIZE = 300_000


@dataclass
class Keys:
    """An account's keys; `token` is None for permanent ones, and `expiration` is in Unix seconds."""

    access_key: str
    secret: str
    token: str | None = None
    expiration: float | None = None
    is_revoked: bool = False

    @property
    def is_expired(self):
        return self.is_revoked or (self.expiration is not None and time.time() > self.expiration)

    @property
    def expires(self):
        """The expiration as AWS writes it."""
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.expiration))


class Accounts:
    """Issues keys, which all stores and credential services share; `lifetime` is that of the next temporary keys."""

    def __init__(self, vault):
        self.vault, self.lifetime = vault, 3600
        self.keys, self.issued = {}, []
        self.lock = threading.Lock()

    def permanent(self):
        return self.add(Keys("AKIA" + uuid.uuid4().hex[:16].upper(), self.vault.new("secretAccessKey") + "/+x="))

    def temporary(self, lifetime=None):
        """New keys with a session token."""
        return self.add(
            Keys(
                "ASIA" + uuid.uuid4().hex[:16].upper(), self.vault.new("secretAccessKey") + "/+x=",
                self.vault.new("sessionToken") + "//+==", time.time() + (lifetime or self.lifetime),
            )
        )  # fmt: skip

    def add(self, keys):
        with self.lock:
            self.keys[keys.access_key] = keys
            self.issued.append(keys)
        return keys

    def revoke_all(self):
        """Revokes the temporary keys that exist now; returns their number."""
        with self.lock:
            valid = [keys for keys in self.issued if keys.token and not keys.is_revoked]
        for keys in valid:
            keys.is_revoked = True
        return len(valid)


def s3_error(refusal):
    body = f"<?xml version='1.0'?><Error><Code>{refusal.code}</Code><Message>{refusal.message}</Message></Error>"
    return Answer(refusal.status, {"Content-Type": "application/xml"}, body.encode())


class ObjectStore(Mock):
    """S3 with buckets in the path. Each key below the bucket exists; `sizes` overrides the length of a key."""

    def __init__(self, accounts, region="us-east-1", sizes=None):
        self.accounts, self.sizes = accounts, sizes or {}
        self.verifier = Verifier(accounts.keys, region)
        self.refusals = []
        #: The keys of the bucket, for listings.
        self.names = []
        #: The status of ExpiredToken; S3 sends 400, its kin send 403.
        self.expired_status = 400
        super().__init__()

    def answer(self, request):
        self.verifier.offset = self.offset
        try:
            request.account = self.verifier.verify(request)
        except Refused as refusal:
            if refusal.code == "ExpiredToken":
                refusal.status = self.expired_status
            self.refusals.append(refusal)
            return s3_error(refusal)
        key = request.name.partition("/")[2].partition("/")[2]
        if not key and "list-type" in request.parameters:
            return self.listing(request.parameters)
        if key.startswith("forbidden"):
            return s3_error(Refused("AccessDenied", "no identity-based policy allows the s3:GetObject action"))
        return serve(request, content(key, self.sizes.get(key, SIZE)))

    def listing(self, values):
        """`GET Bucket` of the XML API of Google Cloud Storage with `list-type=2`; another parameter is a fault."""
        known = {"list-type", "prefix", "delimiter", "max-keys", "continuation-token", "start-after", "encoding-type"}
        if values["list-type"] != "2" or set(values) - known:
            self.fault(f"a list with the parameters {sorted(values)}")
        prefix, delimiter = values.get("prefix", ""), values.get("delimiter")
        found = {}
        for name in sorted(name for name in self.names if name.startswith(prefix)):
            folder, slash, _ = name[len(prefix) :].partition(delimiter) if delimiter else (name, "", "")
            found[prefix + folder + slash if slash else name] = bool(slash)
        names = [name for name in sorted(found) if name > values.get("continuation-token", "")]
        part = names[: int(values.get("max-keys", "1000"))]
        xml_of = xml.sax.saxutils.escape
        entries = "".join(
            f"<CommonPrefixes><Prefix>{xml_of(name)}</Prefix></CommonPrefixes>" if found[name] else
            f"<Contents><Key>{xml_of(name)}</Key><Generation>1</Generation><MetaGeneration>1</MetaGeneration>"
            f"<LastModified>2026-11-04T10:00:00.000Z</LastModified><ETag>\"x\"</ETag><Size>{self.sizes.get(name, SIZE)}</Size></Contents>"
            for name in part
        )  # fmt: skip
        is_cut = len(part) < len(names)
        rest = f"<NextContinuationToken>{xml_of(part[-1])}</NextContinuationToken>" if is_cut else ""
        body = (
            "<?xml version='1.0' encoding='UTF-8'?><ListBucketResult xmlns='http://doc.s3.amazonaws.com/2006-03-01'>"
            f"<Name>media</Name><Prefix>{xml_of(prefix)}</Prefix><IsTruncated>{str(is_cut).lower()}</IsTruncated>{rest}{entries}"
            "</ListBucketResult>"
        )
        return Answer(200, {"Content-Type": "application/xml; charset=UTF-8"}, body.encode())

    def codes(self):
        return [refusal.code for refusal in self.refusals]


class BlobStore(Mock):
    """Azure Blob Storage with a shared access signature: the query of each request must be exactly `query`."""

    def __init__(self, query, sizes=None):
        self.expected, self.sizes = query, sizes or {}
        super().__init__()

    def answer(self, request):
        if "authorization" in request.fields:
            self.fault("a request with a shared access signature has Authorization, too")
        if request.query != self.expected:
            body = b"<?xml version='1.0'?><Error><Code>AuthenticationFailed</Code></Error>"
            return Answer(403, {"Content-Type": "application/xml", "x-ms-error-code": "AuthenticationFailed"}, body)
        key = request.name.partition("/")[2].partition("/")[2]
        return serve(request, content(key, self.sizes.get(key, SIZE)))
