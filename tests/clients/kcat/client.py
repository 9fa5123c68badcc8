#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kcat behind the common command line of the clients (see ../README.md).

kcat takes records from standard input with delimiters; headers, partition and the meaning of an
empty field hold for one run of it. So runs of neighbouring records that agree in these go to one
kcat each. It cannot set timestamps, and it creates a topic by asking for it.
"""
import itertools
import re
import subprocess
import sys
import time

KEY_END, RECORD_END = b"<|key|>", b"<|end|>"
# Lengths first, then the bytes, so that any key or value can be told apart. Headers come last.
READ_FORMAT = r"%p %o %T %K %S\n%k%s%h<|end|>"


def parse(field):
    return None if field == "null" else bytes.fromhex(field[1:])


def show(data):
    return "null" if data is None else "x" + data.hex()


def version():
    out = subprocess.run(["kcat", "-V"], capture_output=True, text=True, check=True).stdout
    number, library = re.search(r"Version (\S+).*librdkafka (\S+)", out).groups()
    print(f"kcat {number} (librdkafka {library})")
    print("codecs none gzip snappy lz4 zstd")
    print("idempotence yes")
    print("timestamps no")
    print("acks no")
    print("null_headers yes")


def create(bootstrap, topic, partitions):
    for _ in range(100):
        out = subprocess.run(["kcat", "-b", bootstrap, "-L", "-t", topic],
                             capture_output=True, text=True, check=True).stdout
        if f'topic "{topic}" with {partitions} partitions:' in out:
            return
        time.sleep(0.1)
    sys.exit(f"kcat: {topic} was not created with {partitions} partitions by asking for it:\n{out}")


def one_run(line):
    """Return what must be equal for two records to share a kcat."""
    partition, _, key, value, headers = line.split(" ")
    return partition, headers, "null" in (key, value), key == "null" and value == "x"


def produce(bootstrap, topic, codec, idempotent, path):
    with open(path, encoding="ascii") as file:
        data = file.read().splitlines()
    for (partition, headers, nulls, _), group in itertools.groupby(data, one_run):
        command = ["kcat", "-P", "-b", bootstrap, "-t", topic, "-p", partition, "-z", codec,
                   "-K", KEY_END.decode(), "-D", RECORD_END.decode(), "-X", "linger.ms=20",
                   "-X", "acks=all", "-X", f"enable.idempotence={idempotent}"]
        command += ["-Z"] if nulls else []
        for header in [] if headers == "-" else headers.split(","):
            name, value = map(parse, header.split("="))
            command += ["-H", name if value is None else name + b"=" + value]
        rows = [line.split(" ") for line in group]
        body = RECORD_END.join((parse(r[2]) or b"") + KEY_END + (parse(r[3]) or b"") for r in rows)
        subprocess.run(command, input=body, check=True)


def show_headers(data):
    """Translate kcat's listing of headers, which prints a null value as NULL."""
    shown = []
    for item in data.split(b",") if data else []:
        name, value = item.split(b"=", 1)
        shown.append(f"{show(name)}={show(None if value == b'NULL' else value)}")
    return ",".join(shown) or "-"


def print_records(data):
    at = 0
    while at < len(data):
        head_end = data.index(b"\n", at)
        partition, offset, timestamp, key_size, size = map(int, data[at:head_end].split())
        at = head_end + 1
        key = None if key_size < 0 else data[at:at + key_size]
        at += max(key_size, 0)
        value = None if size < 0 else data[at:at + size]
        at += max(size, 0)
        end = data.index(RECORD_END, at)
        headers = show_headers(data[at:end])
        at = end + len(RECORD_END)
        print(partition, offset, timestamp, show(key), show(value), headers)


def consume(bootstrap, *topics):
    for topic in topics:
        print("topic", topic)
        done = subprocess.run(
            ["kcat", "-C", "-q", "-e", "-b", bootstrap, "-t", topic, "-o", "beginning",
             "-X", "check.crcs=true", "-X", "fetch.wait.max.ms=20", "-f", READ_FORMAT],
            capture_output=True, check=False)
        if done.returncode:
            sys.exit(done.stderr.decode())
        print_records(done.stdout)


if __name__ == "__main__":
    {"version": version, "create": create, "produce": produce, "consume": consume}[sys.argv[1]](
        *sys.argv[2:])
