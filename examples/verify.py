#!/usr/bin/env python3
"""Compares a file, or the response of a URL, with the checksums of an asset of Larder.

    verify.py film.mp4 http://127.0.0.1:8080/v1/assets/77032addc7f69d8e190713bfb213a2c9/integrity
    verify.py http://127.0.0.1:8080/o/media/film.mp4 integrity.json

The integrity document is a URL, whose pages are all read, or a file with one page. LARDER_TOKEN is the token of the
service, if it needs one; it is sent to the host of the integrity document only. Each differing block is one line.

Exit status: 0 if all compared blocks are equal, 1 if a block or the length differs, 2 if nothing could be compared.
Blocks that the service has not stored are not compared; with --complete they are an error (2).
"""

import argparse
import json
import os
import sys
import urllib.error
import urllib.parse
import urllib.request

TIMEOUT = 60
CHUNK = 1 << 18


def crc32c_table():
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


TABLE = crc32c_table()


def crc32c(data, earlier=0):
    """The CRC-32C (RFC 3720 §12.1) of bytes, continued from that of preceding ones."""
    value, table = earlier ^ 0xFFFFFFFF, TABLE
    for byte in data:
        value = table[(value ^ byte) & 0xFF] ^ value >> 8
    return value ^ 0xFFFFFFFF


class Failed(Exception):
    """The comparison is not possible."""


def is_url(place):
    return place.startswith(("http://", "https://"))


class SameHost(urllib.request.HTTPRedirectHandler):
    """Follows redirects, without the token to another host."""

    def redirect_request(self, request, *arguments):
        redirected = super().redirect_request(request, *arguments)
        if redirected and redirected.host != request.host:
            redirected.remove_header("Authorization")
        return redirected


def fetch(url, trusted):
    """The open response of a URL. The token is sent to the host of the URL `trusted`."""
    request = urllib.request.Request(url, headers={"Accept-Encoding": "identity"})
    token = os.environ.get("LARDER_TOKEN")
    if token and urllib.parse.urlsplit(url)[:2] == urllib.parse.urlsplit(trusted)[:2]:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        return urllib.request.build_opener(SameHost).open(request, timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        text = error.read(1 << 16).decode(errors="replace")
        try:
            text = json.loads(text)["detail"]
        except (ValueError, KeyError, TypeError):
            text = error.reason
        raise Failed(f"{url}: {error.code}: {text}") from error


def pages(place):
    """The pages of an integrity document, all of one generation."""
    if not is_url(place):
        with open(place, "rb") as file:
            document = json.load(file)
        if document.get("nextCursor"):
            print("the document has further pages, which are not compared", file=sys.stderr)
        yield document
        return
    parts = urllib.parse.urlsplit(place)
    query = {"limit": "1000", **dict(urllib.parse.parse_qsl(parts.query))}
    first = None
    while True:
        with fetch(parts._replace(query=urllib.parse.urlencode(query)).geturl(), place) as response:
            document = json.load(response)
        first = first or document
        if any(document[name] != first[name] for name in ("generation", "contentLength", "etag")):
            raise Failed("the asset has changed meanwhile; start again")
        yield document
        if document["nextCursor"] is None:
            return
        query["cursor"] = document["nextCursor"]


class Content:
    """The bytes to compare, read once in order. `etag` is that of the response; None: unknown."""

    def __init__(self, place, trusted):
        self.position, self.etag = 0, None
        if is_url(place):
            self.stream = fetch(place, trusted)
            self.etag = self.stream.headers.get("ETag")
        else:
            self.stream = open(place, "rb")

    def skip(self, offset):
        """Reads up to `offset`; the number of bytes that are missing."""
        while self.position < offset:
            data = self.stream.read(min(CHUNK, offset - self.position))
            if not data:
                break
            self.position += len(data)
        return offset - self.position

    def block(self, offset, length):
        """The bytes of a block; fewer at the end of the content."""
        self.skip(offset)
        data = self.stream.read(length) if self.position == offset else b""
        self.position += len(data)
        return data

    def end(self):
        """Reads the rest. The length of the content."""
        while data := self.stream.read(CHUNK):
            self.position += len(data)
        return self.position


def compare(content, place):
    """Prints the differing blocks. The numbers of compared and differing ones, the compared bytes, and the length that
    the document states."""
    compared = differing = covered = 0
    length = None
    for document in pages(place):
        if document["algorithm"] != "crc-32c":
            raise Failed(f"the algorithm {document['algorithm']} is unknown")
        length = document["contentLength"]
        if content.etag and document["etag"] and content.etag != document["etag"]:
            raise Failed(f"the content has the ETag {content.etag}, the document {document['etag']}")
        for item in document["items"]:
            offset, size = item["offset"], item["length"]
            data = content.block(offset, size)
            found = f"{crc32c(data):08x}"
            compared, covered = compared + 1, covered + size
            if len(data) != size:
                differing += 1
                print(f"{offset}-{offset + size - 1}: the content ends after {content.position} bytes")
            elif found != item["crc32c"]:
                differing += 1
                print(f"{offset}-{offset + size - 1}: {found}, expected {item['crc32c']}")
    return compared, differing, covered, length


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("content", metavar="CONTENT", help="a file or a URL")
    parser.add_argument("document", metavar="INTEGRITY", help="the integrity document: a URL or a file")
    parser.add_argument("--complete", action="store_true", help="blocks without a checksum are an error")
    options = parser.parse_args()
    try:
        content = Content(options.content, options.document)
        compared, differing, covered, length = compare(content, options.document)
        found = content.end()
        if length is not None and found != length:
            print(f"the content has {found} bytes, expected {length}")
            differing += 1
        print(f"{compared} blocks compared, {covered} of {length if length is not None else '?'} bytes")
        if differing:
            return 1
        if compared == 0 and length != 0:
            raise Failed("the service has stored no block of the asset")
        if options.complete and covered != length:
            raise Failed(f"{length - covered if length is not None else 'some'} bytes have no checksum")
        return 0
    except Failed as failure:
        print(f"verify.py: {failure}", file=sys.stderr)
    except (OSError, ValueError, KeyError, TypeError) as error:
        print(f"verify.py: {type(error).__name__}: {error}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
