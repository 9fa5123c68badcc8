#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Choose golden frames from what `proxy.py` and `probe.py` recorded.

    pick.py [--richest] [--apis API,API...] OUTDIR FRAMES.jsonl...

At most three samples for each API, version and direction, at most 8 KiB each, no two that differ
in nothing but the correlation id. Samples go round the peers, so that each peer is heard before
one is heard twice; within one exchange of peers the order is that of the recording. With
`--richest` there are up to five, each the one with the most fields that no sample before it filled
in so (positive, negative, or which small number), and none that adds nothing. The result is the
same for the same input.
"""
import argparse
import json
import pathlib
import sys
from collections import defaultdict

from names import API_KEYS
from schemas import decode_request, decode_response

SAMPLES_MAX = 3
RICHEST_MAX = 5
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


def candidates(paths, apis):
    """Return {(api, version, direction): {(peer, asked by): [line]}} without duplicates."""
    found, seen = defaultdict(lambda: defaultdict(list)), set()
    for path in paths:
        for text in open(path, encoding="ascii"):
            line = json.loads(text)
            if is_refused_version(line):
                line["asked_by"] += f" in version {line['version']}"
                line["version"] = 0
            name = line["api"], line["version"], line["direction"]
            if line["api"] not in apis or len(line["frame"]) > 2 * FRAME_BYTES_MAX:
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


def filled_in(value, path=""):
    """Yield which fields of a decoded message have which kind of value."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from filled_in(inner, f"{path}.{name}")
    elif isinstance(value, list):
        yield path, "several" if len(value) > 1 else "some" if value else "none"
        for inner in value:
            yield from filled_in(inner, path)
    elif isinstance(value, int):
        yield path, value if -2 <= value <= 1 or path.endswith("error_code") else value > 0
    else:
        yield path, value and True


def is_by_itself(line):
    """Tell what a client or broker sends of itself from what the probe made up."""
    return not line["asked_by"].startswith("strandline-probe")


def choose_richest(by_peer):
    """Take what adds the most to what was taken, and stop when nothing adds to it."""
    lines = [line for lines in by_peer.values() for line in lines]
    decode = decode_request if lines[0]["direction"] == "request" else decode_response
    left = [(set(filled_in(decode(line["api"], line["version"], bytes.fromhex(line["frame"]))[1])),
             line) for line in lines]
    seen, chosen = set(), []
    while left and len(chosen) < RICHEST_MAX:
        fields, line = max(left, key=lambda pair: (len(pair[0] - seen), is_by_itself(pair[1])))
        if chosen and not fields - seen:
            break
        seen |= fields
        chosen.append(line)
    return chosen


def write(directory, name, number, line):
    api, version, direction = name
    frame = line["frame"]
    note = f"# peer: {line['peer']}"
    if direction == "response" and line["asked_by"] != line["peer"]:
        note += f" (asked by {line['asked_by']})"
    rows = [frame[i:i + HEX_COLUMNS] for i in range(0, len(frame), HEX_COLUMNS)]
    path = directory / f"{api}-v{version}-{direction}-{number}.hex"
    path.write_text("\n".join([note, *rows]) + "\n", encoding="ascii")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("frames", nargs="+")
    parser.add_argument("--richest", action="store_true")
    parser.add_argument("--apis", type=lambda names: names.split(","), default=list(API_KEYS))
    args = parser.parse_args()
    args.directory.mkdir(parents=True, exist_ok=True)
    for old in args.directory.glob("*.hex"):
        old.unlink()
    bad = 0
    for name, by_peer in sorted(candidates(args.frames, args.apis).items()):
        chosen = (choose_richest if args.richest else choose)(by_peer)
        for number, line in enumerate(chosen, 1):
            why = understood(line)
            if why:
                print("not understood:", *name, line["peer"], why)
                bad += 1
            write(args.directory, name, number, line)
    print(len(list(args.directory.glob("*.hex"))), "golden frames,", bad, "not understood")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
