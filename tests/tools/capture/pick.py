#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Choose golden frames from what `proxy.py` and `probe.py` recorded.

    pick.py OUTDIR FRAMES.jsonl...

At most three samples for each API, version and direction, at most 8 KiB each, no two that differ
in nothing but the correlation id. Samples go round the peers, so that each peer is heard before
one is heard twice; within one exchange of peers the order is that of the recording. The result is
the same for the same input.
"""
import json
import pathlib
import sys
from collections import defaultdict

from names import API_KEYS
from schemas import decode_request, decode_response

SAMPLES_MAX = 3
FRAME_BYTES_MAX = 8192
HEX_COLUMNS = 96


def without_correlation(line):
    frame = line["frame"]
    return frame[:8] + frame[16:] if line["direction"] == "request" else frame[8:]


def understood(line):
    """Return why the frame does not decode with our own table, or None."""
    frame = bytes.fromhex(line["frame"])
    decode = decode_request if line["direction"] == "request" else decode_response
    try:
        decode(line["api"], line["version"], frame)
    except Exception as error:  # any failure of the decoder means the same
        return repr(error)
    return None


def is_refused_version(line):
    """ApiVersions in a version that the broker lacks is answered with the body of version 0."""
    return (line["api"], line["direction"], line["frame"][8:12]) == ("ApiVersions", "response",
                                                                     "0023")


def candidates(paths):
    """Return {(api, version, direction): {(peer, asked by): [line]}} without duplicates."""
    found, seen = defaultdict(lambda: defaultdict(list)), set()
    for path in paths:
        for text in open(path, encoding="ascii"):
            line = json.loads(text)
            if is_refused_version(line):
                line["asked_by"] += f" in version {line['version']}"
                line["version"] = 0
            name = line["api"], line["version"], line["direction"]
            if line["api"] not in API_KEYS or len(line["frame"]) > 2 * FRAME_BYTES_MAX:
                continue
            if (name, without_correlation(line)) in seen:
                continue
            seen.add((name, without_correlation(line)))
            found[name][line["peer"], line["asked_by"]].append(line)
    return found


def choose(by_peer):
    """Go round the peers until there are enough samples."""
    queues, chosen = [list(lines) for lines in by_peer.values()], []
    while queues and len(chosen) < SAMPLES_MAX:
        queue = queues.pop(0)
        chosen.append(queue.pop(0))
        if queue:
            queues.append(queue)
    return chosen


def write(directory, name, number, line):
    api, version, direction = name
    frame = line["frame"]
    note = f"# peer: {line['peer']}"
    if direction == "response":
        note += f" (asked by {line['asked_by']})"
    rows = [frame[i:i + HEX_COLUMNS] for i in range(0, len(frame), HEX_COLUMNS)]
    path = directory / f"{api}-v{version}-{direction}-{number}.hex"
    path.write_text("\n".join([note, *rows]) + "\n", encoding="ascii")


def main():
    directory = pathlib.Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    for old in directory.glob("*.hex"):
        old.unlink()
    bad = 0
    for name, by_peer in sorted(candidates(sys.argv[2:]).items()):
        for number, line in enumerate(choose(by_peer), 1):
            why = understood(line)
            if why:
                print("not understood:", *name, line["peer"], why)
                bad += 1
            write(directory, name, number, line)
    print(len(list(directory.glob("*.hex"))), "golden frames,", bad, "not understood")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
