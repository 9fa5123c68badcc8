# SPDX-License-Identifier: Apache-2.0
"""Record batches with every field under the caller's hand, right or wrong, and their way back."""
import struct
import zlib

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
APPEND_TIME, TRANSACTIONAL, CONTROL, DELETE_HORIZON = 8, 16, 32, 64
HEADER = ">qiibIhiqqqhii"
HEADER_FIELDS = (
    "base_offset", "length", "leader_epoch", "magic", "crc", "attributes", "last_delta",
    "base_timestamp", "max_timestamp", "producer_id", "producer_epoch", "base_sequence", "count",
)
HEADER_BYTES = struct.calcsize(HEADER)


def crc_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


CRC_TABLE = crc_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ CRC_TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def uvarint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def zigzag(value):
    return uvarint((value << 1 ^ value >> 63) & 0xFFFFFFFFFFFFFFFF)


def sized(data):
    return zigzag(-1) if data is None else zigzag(len(data)) + data


def record(delta, key=b"k", value=b"value", headers=(), timestamp_delta=0, length=None, tail=b""):
    """Return one record; `length` replaces the true one, `tail` follows the last header."""
    body = b"\0" + zigzag(timestamp_delta) + zigzag(delta) + sized(key) + sized(value)
    body += zigzag(len(headers)) + b"".join(sized(k) + sized(v) for k, v in headers) + tail
    return zigzag(len(body) if length is None else length) + body


def snappy_block(data):
    """Return data as one literal of snappy's raw format."""
    return uvarint(len(data)) + bytes([61 << 2]) + struct.pack("<H", len(data) - 1) + data


def zstd_frame(data):
    """Return data as one raw block of a zstd frame."""
    header = struct.pack("<IBI", 0xFD2FB528, 0xA0, len(data))
    return header + (len(data) << 3 | 1).to_bytes(3, "little") + data


def compress(codec, data):
    if codec == GZIP:
        packer = zlib.compressobj(6, zlib.DEFLATED, 31)
        return packer.compress(data) + packer.flush()
    return {NONE: bytes, SNAPPY: snappy_block, ZSTD: zstd_frame}[codec](data)


def batch(records, timestamp, codec=NONE, payload=None, crc_error=0, **fields):
    """Build a batch of encoded records; any header field can be overruled by name."""
    body = compress(codec, b"".join(records)) if payload is None else payload
    values = {
        "base_offset": 0, "length": HEADER_BYTES - 12 + len(body), "leader_epoch": -1, "magic": 2,
        "crc": 0, "attributes": codec, "last_delta": len(records) - 1,
        "base_timestamp": timestamp, "max_timestamp": timestamp, "producer_id": -1,
        "producer_epoch": -1, "base_sequence": -1, "count": len(records), **fields,
    }
    packed = struct.pack(HEADER, *(values[name] for name in HEADER_FIELDS))
    crc = crc32c(packed[21:] + body) ^ crc_error
    return packed[:17] + struct.pack(">I", crc) + packed[21:] + body


def old_message(magic, timestamp, key=b"k", value=b"old"):
    """Build a message set of one message in one of the two old formats."""
    body = struct.pack(">bb", magic, 0) + (struct.pack(">q", timestamp) if magic else b"")
    for data in (key, value):
        body += struct.pack(">i", len(data)) + data
    return struct.pack(">qiI", 0, len(body) + 4, zlib.crc32(body)) + body


def parse(data):
    """Return the batches of a fetch as a list of dicts of their header fields and their payload."""
    found, at = [], 0
    while len(data) - at >= HEADER_BYTES:
        fields = dict(zip(HEADER_FIELDS, struct.unpack_from(HEADER, data, at)))
        end = at + 12 + fields["length"]
        fields["payload"] = data[at + HEADER_BYTES:end]
        found.append(fields)
        at = end
    return found
