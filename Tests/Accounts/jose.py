"""JSON Web Tokens for tests, made with the openssl command; PyJWT checks them where it is installed."""

import base64
import hashlib
import hmac
import json
import pathlib
import subprocess
import tempfile
import time


def base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def unbase64url(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def openssl(*arguments, data=None):
    return subprocess.run(["openssl", *map(str, arguments)], input=data, check=True, capture_output=True).stdout


class SigningKey:
    """An RSA key with an identifier; `file` is its PEM file (PKCS #8)."""

    def __init__(self, directory, kid):
        self.kid, self.file = kid, pathlib.Path(directory) / f"{kid}.pem"
        openssl("genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", self.file)
        modulus = openssl("rsa", "-in", self.file, "-noout", "-modulus").decode().strip().partition("=")[2]
        self.jwk = {
            "kty": "RSA", "kid": kid, "use": "sig", "alg": "RS256", "n": base64url(bytes.fromhex(modulus)), "e": "AQAB",
        }  # fmt: skip

    @property
    def pem(self):
        return self.file.read_text()

    @property
    def public_pem(self):
        return openssl("pkey", "-in", self.file, "-pubout").decode()

    def sign(self, claims, header=None):
        """A token with these claims; members of `header` that are None are left out."""
        members = {"alg": "RS256", "typ": "JWT", "kid": self.kid, **(header or {})}
        text = signing_input({name: value for name, value in members.items() if value is not None}, claims)
        return f"{text}.{base64url(openssl('dgst', '-sha256', '-sign', self.file, data=text.encode()))}"

    def verify(self, token):
        """The claims of a token that this key signed; raises ValueError."""
        try:
            text, _, given = token.rpartition(".")
            header, claims = (json.loads(unbase64url(part)) for part in text.split("."))
            if header.get("alg") != "RS256":
                raise ValueError(f"the algorithm is {header.get('alg')}")
            with tempfile.NamedTemporaryFile() as proof, tempfile.NamedTemporaryFile() as public:
                proof.write(unbase64url(given))
                proof.flush()
                public.write(self.public_pem.encode())
                public.flush()
                openssl("dgst", "-sha256", "-verify", public.name, "-signature", proof.name, data=text.encode())
        except (subprocess.CalledProcessError, TypeError) as error:
            raise ValueError(f"the signature is invalid: {error}") from None
        return claims


def signing_input(header, claims):
    return ".".join(base64url(json.dumps(part).encode()) for part in (header, claims))


def hs256(key, claims, header=None):
    """A token with HMAC-SHA256; `key` is bytes."""
    text = signing_input({"alg": "HS256", "typ": "JWT", **(header or {})}, claims)
    return f"{text}.{base64url(hmac.new(key, text.encode(), hashlib.sha256).digest())}"


def unsigned(claims, algorithm="none"):
    """A token without a signature."""
    return signing_input({"alg": algorithm, "typ": "JWT"}, claims) + "."


def claims(issuer, audience, seconds=600, **members):
    now = int(time.time())
    return {"iss": issuer, "aud": audience, "iat": now, "exp": now + seconds, "sub": "player-7", **members}
