"""An OAuth 2.0 authorization server, and a resource server that accepts its access tokens."""

import base64
import json
import threading
import time
import urllib.parse

from .base import Answer, Mock, content, serve

SIZE = 300_000
JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"


class AuthorizationServer(Mock):
    """Token endpoint `/token` with client credentials, rotated refresh tokens and JWT assertions. `verify_assertion`
    returns the claims of an assertion or raises ValueError; `lifetime` is `expires_in` of the next tokens."""

    def __init__(self, vault, scope=None, audience=None, verify_assertion=None):
        self.vault, self.scope, self.audience, self.verify_assertion = vault, scope, audience, verify_assertion
        self.client_id, self.client_secret = "larder-client", vault.new("clientSecret")
        self.lifetime, self.issued, self.reused, self.failing = 3600, 0, 0, None
        self.valid, self.spent = {}, set()
        self.refresh_token = vault.new("refreshToken")
        self.lock = threading.Lock()
        super().__init__()

    def answer(self, request):
        if self.failing:
            return self.error("temporarily_unavailable", self.failing)
        if request.path == "/keys":
            return Answer(404)
        if request.path != "/token" or request.method != "POST":
            return Answer(405)
        if request.fields.get("content-type", "").partition(";")[0] != "application/x-www-form-urlencoded":
            return self.error("invalid_request")
        if request.query:
            self.fault("a request for a token has a query")
        values = request.form
        grants = {"client_credentials": self.by_client, "refresh_token": self.by_refresh, JWT_BEARER: self.by_assertion}
        grant = grants.get(values.get("grant_type"))
        with self.lock:
            return grant(request, values) if grant else self.error("unsupported_grant_type")

    def is_client(self, request, values):
        """HTTP Basic with form-encoded parts (RFC 6749 §2.3.1), or members of the body; not both."""
        field = request.fields.get("authorization", "")
        if field.startswith("Basic "):
            if "client_secret" in values:
                self.fault("the client authenticates in two ways")
            name, _, secret = base64.b64decode(field[6:]).decode().partition(":")
            name, secret = urllib.parse.unquote_plus(name), urllib.parse.unquote_plus(secret)
        else:
            name, secret = values.get("client_id"), values.get("client_secret")
        return (name, secret) == (self.client_id, self.client_secret)

    def by_client(self, request, values):
        if not self.is_client(request, values):
            return self.error("invalid_client", 401)
        if values.get("scope") != self.scope or values.get("audience") != self.audience:
            return self.error("invalid_scope")
        return self.issue()

    def by_refresh(self, request, values):
        if not self.is_client(request, values):
            return self.error("invalid_client", 401)
        given = values.get("refresh_token")
        if given in self.spent:
            # A used refresh token is a sign of theft: all tokens end (RFC 9700 §4.14.2).
            self.reused += 1
            self.valid.clear()
            self.refresh_token = None
        if given != self.refresh_token or given is None:
            return self.error("invalid_grant")
        self.spent.add(given)
        self.refresh_token = self.vault.new("refreshToken")
        return self.issue(refresh_token=self.refresh_token)

    def by_assertion(self, request, values):
        try:
            claims = self.verify_assertion(values.get("assertion", ""))
        except ValueError as reason:
            return self.error("invalid_grant", reason=str(reason))
        now = time.time()
        if not claims.get("exp", 0) > now or claims["exp"] > now + 3700 or claims.get("iat", now) > now + 60:
            return self.error("invalid_grant", reason="exp or iat")
        # Google wants the scope as a claim; others take the member of the form.
        if (claims.get("scope") or values.get("scope")) != self.scope or claims.get("aud") != (
            self.audience or f"{self.url}/token"
        ):
            return self.error("invalid_grant", reason="scope or aud")
        return self.issue()

    def issue(self, **members):
        token = self.vault.new("accessToken")
        self.issued += 1
        self.valid[token] = time.time() + self.lifetime
        members |= {"access_token": token, "token_type": "Bearer", "expires_in": self.lifetime}
        fields = {"Content-Type": "application/json", "Cache-Control": "no-store"}
        return Answer(200, fields, json.dumps(members).encode())

    def error(self, code, status=400, reason=""):
        body = json.dumps({"error": code, "error_description": reason or code})
        return Answer(status, {"Content-Type": "application/json"}, body.encode())

    def is_valid(self, token):
        with self.lock:
            return self.valid.get(token, 0) > time.time()

    def revoke_all(self):
        """Revokes all access tokens that exist now."""
        with self.lock:
            self.valid.clear()


class Resources(Mock):
    """Files for requests with an access token in this scheme; `sizes` overrides lengths."""

    def __init__(self, authority, scheme="Bearer", sizes=None, required=None):
        self.authority, self.scheme, self.sizes, self.required = authority, scheme, sizes or {}, required or {}
        super().__init__()

    def answer(self, request):
        scheme, _, token = request.fields.get("authorization", "").partition(" ")
        request.account = token
        if scheme != self.scheme or not self.authority.is_valid(token):
            return Answer(401, {"WWW-Authenticate": f'{self.scheme} error="invalid_token"'})
        for name, value in self.required.items():
            if request.fields.get(name) != value:
                return Answer(400, {"Content-Type": "text/plain"}, f"{name} is required".encode())
        name = request.name.lstrip("/")
        return serve(request, content(name, self.sizes.get(name, SIZE)))
