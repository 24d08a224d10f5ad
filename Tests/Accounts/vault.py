"""The secrets of a scenario, and the search for them in everything that a service shows, logs or stores."""

import base64
import pathlib
import threading
import urllib.parse
import uuid

#: Shorter texts would be found by chance.
MIN_LENGTH = 12
#: Bytes of a file that are searched at once; chunks overlap by the longest needle.
CHUNK = 8 << 20


class Vault:
    """Creates and keeps secrets; thread-safe."""

    def __init__(self):
        self.lock = threading.Lock()
        self.kinds = {}

    def new(self, kind):
        """A random secret without characters that an encoding would change; `kind` is for messages."""
        return self.keep(kind, f"{kind}-{uuid.uuid4().hex}")

    def keep(self, kind, secret):
        """Adds a secret that was made elsewhere; returns it."""
        if len(secret) < MIN_LENGTH:
            raise ValueError(f"the secret {kind} is too short")
        with self.lock:
            self.kinds[secret] = kind
        return secret

    def needles(self):
        """Searched bytes and the kind of their secret: the text, its percent-encoded form and its base64 form."""
        with self.lock:
            secrets = list(self.kinds.items())
        found = {}
        for secret, kind in secrets:
            raw = secret.encode()
            # The last group of base64 depends on the following bytes.
            encoded = base64.b64encode(raw).rstrip(b"=")[: len(raw) // 3 * 4]
            for needle in (raw, urllib.parse.quote(secret, safe="").encode(), encoded):
                if len(needle) >= MIN_LENGTH:
                    found[needle] = kind
        return found


class Search:
    """Searches places for secrets; `places` are the names of all searched places, `found` the findings."""

    def __init__(self, needles):
        self.needles = needles
        self.longest = max(map(len, needles), default=0)
        self.places, self.found = [], []

    def text(self, place, data, own=()):
        """Searches bytes; `own` are secrets that the place may contain."""
        self.places.append(place)
        self.examine(place, data, own)

    def examine(self, place, data, own=()):
        for needle, kind in self.needles.items():
            if needle in data and not any(needle in permitted.encode() or permitted.encode() in needle for permitted in own):
                at = data.index(needle)
                around = data[max(0, at - 60) : at].decode(errors="replace").replace("\n", " ")
                self.found.append(f"{kind} is in {place}, after {around!r}")

    def file(self, place, path):
        """Searches the content of a file, which may be large."""
        self.places.append(place)
        rest = b""
        with open(path, "rb") as source:
            while chunk := source.read(CHUNK):
                self.examine(place, rest + chunk)
                rest = chunk[-self.longest :] if self.longest else b""

    def names(self, place, directory):
        """Searches the names of all files below a directory."""
        directory = pathlib.Path(directory)
        text = "\n".join(str(path.relative_to(directory)) for path in sorted(directory.rglob("*")))
        self.text(place, text.encode(errors="surrogateescape"))
