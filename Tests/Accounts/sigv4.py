"""Verifies AWS Signature Version 4 on the side of a server, by the published description of AWS and independent of any
client library. A refusal is an S3 error code with the status that S3 sends."""

import datetime
import hashlib
import hmac
import urllib.parse

ALGORITHM = "AWS4-HMAC-SHA256"
UNSIGNED = "UNSIGNED-PAYLOAD"
MAX_SKEW_SECONDS = 900
STATUS = {
    "ExpiredToken": 400, "InvalidToken": 400, "AuthorizationHeaderMalformed": 400, "XAmzContentSHA256Mismatch": 400,
}  # fmt: skip


class Refused(Exception):
    """The request is not authorised; `code` is the S3 error code."""

    def __init__(self, code, message=""):
        super().__init__(f"{code}: {message}")
        self.code, self.message = code, message
        self.status = STATUS.get(code, 403)


def encode(text, safe=""):
    """Percent-encodes all but the unreserved characters; `text` is bytes."""
    return urllib.parse.quote(text, safe=safe + "-._~")


def canonical_path(raw):
    """Each byte of the decoded path is encoded once; slashes stay."""
    return encode(urllib.parse.unquote_to_bytes(raw), safe="/") or "/"


def canonical_query(raw):
    pairs = []
    for part in raw.split("&") if raw else []:
        name, _, value = part.partition("=")
        pairs.append(tuple(encode(urllib.parse.unquote_to_bytes(text)) for text in (name, value)))
    return "&".join(f"{name}={value}" for name, value in sorted(pairs))


def digest(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def signature(secret, date, region, service, text):
    key = f"AWS4{secret}".encode()
    for part in (date, region, service, "aws4_request"):
        key = digest(key, part)
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


class Verifier:
    """Checks requests for one region and service. `keys` maps access keys to objects with `secret`, `token` (None for
    permanent keys) and `is_expired`; `offset` is the difference between the server's clock and the real one."""

    def __init__(self, keys, region="us-east-1", service="s3"):
        self.keys, self.region, self.service = keys, region, service
        self.offset = 0

    def now(self):
        return datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=self.offset)

    def verify(self, request):
        """Returns the access key of a request; raises Refused."""
        credential, signed, given = self.parse(request)
        key, date, region, service, end = (credential.split("/") + [""] * 5)[:5]
        if (region, service, end) != (self.region, self.service, "aws4_request"):
            raise Refused("AuthorizationHeaderMalformed", f"the scope is {region}/{service}/{end}")
        stamp = request.fields.get("x-amz-date", "")
        self.check_time(stamp, date)
        self.check_signed(request, signed)
        account = self.keys.get(key)
        if account is None:
            raise Refused("InvalidAccessKeyId", "the access key does not exist")
        scope = f"{date}/{region}/{service}/aws4_request"
        text = "\n".join([ALGORITHM, stamp, scope, hashlib.sha256(self.canonical(request, signed).encode()).hexdigest()])
        if not hmac.compare_digest(signature(account.secret, date, region, service, text), given):
            raise Refused("SignatureDoesNotMatch", "the signature does not match")
        token = request.fields.get("x-amz-security-token")
        if account.is_expired:
            raise Refused("ExpiredToken", "the provided token has expired")
        if token != account.token:
            raise Refused("InvalidToken", "the security token is not that of the access key")
        return key

    def parse(self, request):
        field = request.fields.get("authorization", "")
        if not field.startswith(ALGORITHM + " "):
            raise Refused("AccessDenied", "there is no signature")
        parts = dict(part.strip().partition("=")[::2] for part in field[len(ALGORITHM) :].split(","))
        if set(parts) != {"Credential", "SignedHeaders", "Signature"}:
            raise Refused("AuthorizationHeaderMalformed", f"the members are {sorted(parts)}")
        signed = parts["SignedHeaders"].split(";")
        if signed != sorted(set(signed)) or any(name != name.lower() for name in signed):
            raise Refused("AuthorizationHeaderMalformed", "SignedHeaders is not sorted")
        return parts["Credential"], signed, parts["Signature"]

    def check_time(self, stamp, date):
        try:
            sent = datetime.datetime.strptime(stamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=datetime.timezone.utc)
        except ValueError:
            raise Refused("AccessDenied", "x-amz-date is missing or malformed") from None
        if stamp[:8] != date:
            raise Refused("SignatureDoesNotMatch", "the date of the scope is not that of x-amz-date")
        if abs((sent - self.now()).total_seconds()) > MAX_SKEW_SECONDS:
            raise Refused("RequestTimeTooSkewed", "the difference between the clocks is too large")

    def check_signed(self, request, signed):
        """The host, all fields `x-amz-…` and the range must be signed."""
        required = {name for name in request.fields if name.startswith("x-amz-") or name in ("host", "range")}
        missing = required - set(signed)
        if missing:
            raise Refused("AccessDenied", f"these fields are not signed: {', '.join(sorted(missing))}")
        absent = [name for name in signed if name not in request.fields]
        if absent:
            raise Refused("SignatureDoesNotMatch", f"these signed fields are missing: {', '.join(absent)}")

    def canonical(self, request, signed):
        actual = hashlib.sha256(request.body).hexdigest()
        stated = request.fields.get("x-amz-content-sha256", actual if self.service != "s3" else None)
        if stated is None:
            raise Refused("AccessDenied", "x-amz-content-sha256 is missing")
        if stated not in (UNSIGNED, actual):
            raise Refused("XAmzContentSHA256Mismatch", "the body does not match x-amz-content-sha256")
        fields = "".join(f"{name}:{' '.join(request.fields[name].split())}\n" for name in signed)
        return "\n".join(
            [request.method, canonical_path(request.path), canonical_query(request.query), fields, ";".join(signed), stated]
        )
