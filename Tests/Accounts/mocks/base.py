"""The base of all servers: an upstream whose subclasses implement `answer`, and the answer to a request for a file."""

import hashlib

from harness.upstream import Answer, Upstream, asset, content

__all__ = ["Answer", "Mock", "content", "serve", "tag_of"]

MODIFIED = "Wed, 04 Nov 2026 10:00:00 GMT"


class Mock(Upstream):
    """A server on a free port. `faults` lists violations by the client."""

    def __init__(self):
        super().__init__()


def tag_of(data):
    """The entity tag of a file: the digest of its first bytes and its length."""
    return f'"{hashlib.sha256(data[:4096]).hexdigest()[:24]}-{len(data)}"'


def serve(request, data, tag=None, fields=()):
    """The answer to GET and HEAD for a file: conditions, one range, otherwise the whole (RFC 9110)."""
    file = asset(
        data=data, etag=tag or tag_of(data), last_modified=MODIFIED, cache_control=None, content_type=None, headers=fields
    )
    return file.answer(request)
