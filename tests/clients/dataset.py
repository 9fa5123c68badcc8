# SPDX-License-Identifier: Apache-2.0
"""The records that every client writes and reads, as text.

A data set is a list of lines, one record a line, in the order in which they are produced:

    PARTITION TIMESTAMP KEY VALUE HEADERS

KEY and VALUE are `null` or `x` and hex (so `x` alone is empty). HEADERS is `-` or a comma-separated
list of NAME=VALUE, both written like keys. A reader prints the same line with the offset after the
partition. The same seed and base time give the same lines.

What all clients can express bounds the variety: kcat cannot send a null beside an empty field, and
kafka-python no record that is null in both and no null header value (`null_headers` is for those
that can). Header values hold no NUL, comma or equals sign, for
kcat prints them as they are. Values compress well, so that a client which falls back to no
compression when it does not pay never has that reason; a short run of random bytes keeps them from
being trivial.
"""
import random

PARTITIONS = 3
WORDS = b"high water mark left on the beach by the last tide of the year ".split()
SIZES = [0, 1, 10, 100, 1000, 10_000, 100 * 1024]


def field(data):
    return "null" if data is None else "x" + data.hex()


def headers_field(headers):
    return ",".join(f"{field(name)}={field(value)}" for name, value in headers) or "-"


def text(rng, size):
    """Return `size` bytes of words; the first 16 are random bytes if there is room."""
    out = bytearray(rng.randbytes(16) if size >= 1000 else b"")
    while len(out) < size:
        out += rng.choice(WORDS) + b" "
    return bytes(out[:size])


def records(seed, null_headers):
    """Yield (partition, key, value, headers)."""
    rng = random.Random(seed)
    for partition in range(PARTITIONS):
        for size in SIZES:
            yield partition, b"size-%d" % size, text(rng, size), []
        yield partition, None, text(rng, 300), []
        yield partition, b"gone-%d" % partition, None, []
        yield partition, b"", text(rng, 40), []
        yield partition, bytes(range(1, 9)) + b"\xff\xfe", text(rng, 200), []
        maybe_null = None if null_headers else b"no"
        headers = [(b"one", b"1"), (b"empty", b""), (b"none", maybe_null),
                   (b"one", b"again \xc3\xa9")]
        for _ in range(3):
            yield partition, b"headed", text(rng, 120), headers
        yield partition, None, text(rng, 120), headers[:1]
        for number in range(50):
            yield partition, b"key-%d" % (number % 17), text(rng, 150 + number), []


def lines(seed, base_ms, null_headers):
    """Return the data set of a seed; timestamps count up from base_ms."""
    return [
        f"{partition} {base_ms + number} {field(key)} {field(value)} {headers_field(headers)}"
        for number, (partition, key, value, headers) in enumerate(records(seed, null_headers))
    ]


def as_read(written):
    """Return {partition: the lines that a reader must print}, offsets from 0."""
    expected = {partition: [] for partition in range(PARTITIONS)}
    for line in written:
        partition, rest = line.split(" ", 1)
        mine = expected[int(partition)]
        mine.append(f"{partition} {len(mine)} {rest}")
    return expected
