# SPDX-License-Identifier: Apache-2.0
"""Headers of stored record batches, read from a broker's raw Fetch answer or from a .log file."""
import dataclasses
import socket
import struct

from names import API_KEYS
from schemas import decode_response, encode_request

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
FETCH_VERSION = 4
HEADER = struct.Struct(">qiibIhiqqqhii")


@dataclasses.dataclass
class Batch:
    """One batch; `data` holds all of its bytes."""

    base_offset: int
    attributes: int
    last_offset_delta: int
    producer_id: int
    record_count: int
    data: bytes

    @property
    def codec(self):
        return CODECS[self.attributes & 7]

    @property
    def next_offset(self):
        return self.base_offset + self.last_offset_delta + 1


def split(data):
    """Yield the whole batches of a buffer; a cut one at the end is left out."""
    at = 0
    while len(data) - at >= HEADER.size:
        (base, size, _, magic, _, attributes, last, _, _, producer, _, _,
         count) = HEADER.unpack_from(data, at)
        assert magic == 2, f"magic {magic}"
        if len(data) - at < size + 12:
            return
        yield Batch(base, attributes, last, producer, count, data[at:at + size + 12])
        at += size + 12


def ask(connection, correlation, topic, partition, offset):
    frame = encode_request("Fetch", API_KEYS["Fetch"], FETCH_VERSION, correlation, "batches", {
        "replica_id": -1, "max_bytes": 8 << 20, "topics": [{"topic": topic, "partitions": [{
            "partition": partition, "fetch_offset": offset, "partition_max_bytes": 8 << 20}]}]})
    connection.sendall(struct.pack(">i", len(frame)) + frame)
    reader = connection.makefile("rb")
    size = struct.unpack(">i", reader.read(4))[0]
    _, answer = decode_response("Fetch", FETCH_VERSION, reader.read(size))
    return answer["responses"][0]["partitions"][0]


def stored(bootstrap, topic, partition):
    """Return the batches of a partition as the broker stores them, from offset 0 to the end."""
    host, port = bootstrap.rsplit(":", 1)
    found, offset = [], 0
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        while True:
            answer = ask(connection, len(found), topic, partition, offset)
            assert answer["error_code"] == 0, f"Fetch error {answer['error_code']}"
            batches = list(split(answer["records"] or b""))
            if not batches:
                assert offset == answer["high_watermark"], f"{topic}: nothing at {offset}"
                return found
            found += batches
            offset = batches[-1].next_offset
