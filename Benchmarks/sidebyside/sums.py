"""The functions of the catalog's triggers: checksums of rows and bytes, and the groups of the usage."""

import json
import struct


def made_table():
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        yield byte


TABLE = list(made_table())


def crc32c(data, before=0):
    """CRC-32C (RFC 3720) of `data`, continued from the checksum `before`."""
    value, table = before ^ 0xFFFFFFFF, TABLE
    for byte in data:
        value = table[(value ^ byte) & 0xFF] ^ value >> 8
    return value ^ 0xFFFFFFFF


def of_row(*values):
    """The function `larder_sum` of the catalog's triggers."""
    parts = []
    for value in values:
        if value is None:
            parts.append(struct.pack("<QQ", 0, 0))
        elif isinstance(value, int):
            parts.append(struct.pack("<Qq", 1, value))
        elif isinstance(value, float):
            parts.append(struct.pack("<Qd", 2, value))
        else:
            data = value.encode() if isinstance(value, str) else value
            parts.append(struct.pack("<QQ", 3 if isinstance(value, str) else 4, len(data)) + data)
    return crc32c(b"".join(parts))


def row_of_one(file, row, length, value):
    """A row of the table `sums`: one block of `length` bytes (64 KiB to 2 MiB), at the beginning of the row's range."""
    body = bytes([0, length & 0x7F | 0x80, length >> 7 & 0x7F | 0x80, length >> 14]) + struct.pack("<I", value)
    return body + struct.pack("<I", crc32c(struct.pack("<qq", file, row) + body))


def groups(key, origin, tags, content_type, created_at):
    """The function `larder_usage` of the catalog's triggers, for keys of origins."""
    path = key.split("?")[0]
    ends = [index for index, letter in enumerate(path) if letter == "/" and index > 2][:8]
    names = [["origin", 0, origin], *(["path", level, path[: end + 1]] for level, end in enumerate(ends))]
    names += [["tag", 0, tag] for tag in sorted(set(json.loads(tags)))]
    names += [["type", 0, (content_type or "").split(";")[0].strip().lower()], ["age", 0, str(created_at // 3_600_000)]]
    return json.dumps(names)
