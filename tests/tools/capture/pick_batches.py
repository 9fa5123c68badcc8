#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Take golden record batches from the .log files of a stopped broker.

    pick_batches.py DATADIR OUTDIR LISTING < WANTED

Each line of standard input wants some: `NAME TOPIC FILTER PEER...`, where FILTER is `any`, or one
of the words below. The first batch of TOPIC-0 that passes is written as OUTDIR/NAME.hex, with the
records that a client read from it beside it in NAME.txt (from LISTING, the output of a client's
`consume`; control batches have none). Batches over 8 KiB are passed over. A filter that finds
nothing is an error.
"""
import pathlib
import sys

import batches

BATCH_BYTES_MAX = 8192
HEX_COLUMNS = 96

FILTERS = {
    "any": lambda b: True,
    "idempotent": lambda b: b.producer_id >= 0 and not b.attributes & 0x30,
    "append-time": lambda b: b.attributes & 0x08,
    "transactional": lambda b: b.attributes & 0x30 == 0x10,
    "commit": lambda b: control_type(b) == 1,
    "abort": lambda b: control_type(b) == 0,
    "horizon": lambda b: b.attributes & 0x40,
    "empty": lambda b: b.record_count == 0,
    "gaps": lambda b: 0 < b.record_count <= b.last_offset_delta,
}


def control_type(batch):
    """Return the type of a transaction marker, or None; its key is the first field of length 4."""
    if not batch.attributes & 0x20:
        return None
    record = batch.data[batches.HEADER.size:]
    key = record.index(b"\x08") + 1
    return int.from_bytes(record[key + 2:key + 4], "big")


def read_listing(path):
    """Return {topic: {offset: line without the partition}} of partition 0."""
    found, lines = {}, {}
    for line in open(path, encoding="ascii"):
        if line.startswith("topic "):
            lines = found.setdefault(line.split()[1], {})
        elif line.startswith("0 "):
            offset = int(line.split()[1])
            lines[offset] = line.split(" ", 1)[1]
    return found


def all_batches(directory):
    for path in sorted(directory.glob("*.log")):
        yield from batches.split(path.read_bytes())


def write(out, name, peer, batch, lines):
    text = batch.data.hex()
    rows = [text[i:i + HEX_COLUMNS] for i in range(0, len(text), HEX_COLUMNS)]
    (out / f"{name}.hex").write_text("\n".join([f"# peer: {peer}", *rows]) + "\n")
    mine = [lines[o] for o in range(batch.base_offset, batch.next_offset) if o in lines]
    if mine and not batch.attributes & 0x20:
        (out / f"{name}.txt").write_text("".join(mine))


def main():
    data, out, listing = map(pathlib.Path, sys.argv[1:])
    read, missing = read_listing(listing), 0
    out.mkdir(parents=True, exist_ok=True)
    for want in sys.stdin:
        name, topic, wanted, peer = want.strip().split(" ", 3)
        fits = [b for b in all_batches(data / f"{topic}-0")
                if FILTERS[wanted](b) and len(b.data) <= BATCH_BYTES_MAX]
        if fits:
            write(out, name, peer, fits[0], read.get(topic, {}))
        else:
            print("nothing found for", want.strip())
            missing += 1
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
