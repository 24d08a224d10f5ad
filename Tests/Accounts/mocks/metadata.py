"""Credential services: the metadata service of an instance (IMDSv2), the endpoint of a container, and STS."""

import json
import threading
import uuid
from xml.sax.saxutils import escape

from sigv4 import Refused, Verifier

from .base import Answer, Mock

ROLE = "media-reader"
ROLE_ARN = f"arn:aws:iam::123456789012:role/{ROLE}"
TOKEN_PATH = "/latest/api/token"
ROLES_PATH = "/latest/meta-data/iam/security-credentials/"


def document(keys, **members):
    """The JSON of temporary keys, as instance and container endpoints send it."""
    members |= {
        "AccessKeyId": keys.access_key, "SecretAccessKey": keys.secret, "Token": keys.token, "Expiration": keys.expires,
    }  # fmt: skip
    return Answer(200, {"Content-Type": "application/json"}, json.dumps(members).encode())


class CredentialService(Mock):
    """A service that issues keys of `accounts`; `issued` counts them, and `failing` is a status for all requests."""

    def __init__(self, accounts):
        self.accounts, self.issued, self.failing = accounts, 0, None
        self.lock = threading.Lock()
        super().__init__()

    def issue(self):
        with self.lock:
            self.issued += 1
        return self.accounts.temporary()


class InstanceMetadata(CredentialService):
    """IMDSv2: a session token from PUT with a lifetime, and no answer without it."""

    def __init__(self, accounts):
        self.sessions = set()
        super().__init__(accounts)

    def answer(self, request):
        if self.failing:
            return Answer(self.failing)
        if "x-forwarded-for" in request.fields:
            return Answer(403)
        if request.path == TOKEN_PATH:
            return self.session(request)
        if request.method != "GET":
            return Answer(405)
        if request.fields.get("x-aws-ec2-metadata-token") not in self.sessions:
            return Answer(401)
        if request.path == ROLES_PATH:
            return Answer(200, {"Content-Type": "text/plain"}, ROLE.encode())
        if request.path == ROLES_PATH + ROLE:
            return document(self.issue(), Code="Success", LastUpdated="2026-11-04T10:00:00Z", Type="AWS-HMAC")
        return Answer(404)

    def session(self, request):
        lifetime = request.fields.get("x-aws-ec2-metadata-token-ttl-seconds", "")
        if request.method != "PUT" or not lifetime.isdigit() or not 1 <= int(lifetime) <= 21600:
            return Answer(400 if request.method == "PUT" else 405)
        session = self.accounts.vault.new("metadataSession")
        self.sessions.add(session)
        fields = {"Content-Type": "text/plain", "X-Aws-Ec2-Metadata-Token-Ttl-Seconds": lifetime}
        return Answer(200, fields, session.encode())


class ContainerCredentials(CredentialService):
    """The endpoint of ECS and EKS: one document at `/v2/credentials`, for the right `Authorization`."""

    PATH = "/v2/credentials"

    def __init__(self, accounts, token):
        self.token = token
        super().__init__(accounts)

    def answer(self, request):
        if self.failing:
            return Answer(self.failing)
        if request.method != "GET" or request.path != self.PATH:
            return Answer(404)
        if request.fields.get("authorization") != self.token:
            return Answer(401)
        return document(self.issue(), RoleArn=ROLE_ARN)


class SecurityTokenService(CredentialService):
    """STS: AssumeRole with a signature, and AssumeRoleWithWebIdentity without one."""

    def __init__(self, accounts, external_id=None, identity=None):
        self.external_id, self.identity = external_id, identity
        self.verifier = Verifier(accounts.keys, service="sts")
        super().__init__(accounts)

    def answer(self, request):
        values = request.form if request.method == "POST" else request.parameters
        if self.failing:
            return self.error(self.failing, "InternalFailure")
        if values.get("Version") != "2011-06-15":
            return self.error(400, "MissingParameter")
        action = values.get("Action", "")
        try:
            if action == "AssumeRole":
                self.verifier.verify(request)
                if values.get("ExternalId") != self.external_id:
                    raise Refused("AccessDenied")
            elif action != "AssumeRoleWithWebIdentity":
                return self.error(400, "InvalidAction")
            elif values.get("WebIdentityToken") != self.identity:
                return self.error(400, "InvalidIdentityToken")
        except Refused as refusal:
            return self.error(refusal.status, refusal.code)
        if values.get("RoleArn") != ROLE_ARN or not values.get("RoleSessionName"):
            return self.error(403, "AccessDenied")
        return self.credentials(action, values["RoleSessionName"])

    def credentials(self, action, session):
        keys = self.issue()
        body = f"""<{action}Response xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
  <{action}Result>
    <AssumedRoleUser>
      <Arn>arn:aws:sts::123456789012:assumed-role/{ROLE}/{escape(session)}</Arn><AssumedRoleId>AROA:{escape(session)}</AssumedRoleId>
    </AssumedRoleUser>
    <Credentials>
      <AccessKeyId>{keys.access_key}</AccessKeyId>
      <SecretAccessKey>{escape(keys.secret)}</SecretAccessKey>
      <SessionToken>{escape(keys.token)}</SessionToken>
      <Expiration>{keys.expires}</Expiration>
    </Credentials>
  </{action}Result>
  <ResponseMetadata><RequestId>{uuid.uuid4()}</RequestId></ResponseMetadata>
</{action}Response>"""
        return Answer(200, {"Content-Type": "text/xml"}, body.encode())

    def error(self, status, code):
        body = (
            '<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type>'
            f"<Code>{code}</Code><Message>{code}</Message></Error><RequestId>{uuid.uuid4()}</RequestId></ErrorResponse>"
        )
        return Answer(status, {"Content-Type": "text/xml"}, body.encode())
