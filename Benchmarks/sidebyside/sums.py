"""Checksums in the format of the catalog: of assets' rows, and of bytes."""

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
