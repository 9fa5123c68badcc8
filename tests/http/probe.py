#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Looks at the HTTP port of a broker.

    probe.py value URL SAMPLE...        the values of samples, as name or name{label="value"}
    probe.py watch URL PID              until standard input ends: all pages answer in time,
                                        metrics are well formed and counters never fall
    probe.py crowd URL PID              idle and slow connections harm nobody
    probe.py starts URL                 waits for the port; not ready comes before ready
    probe.py fails URL BOOTSTRAP TOPIC  waits until it is unhealthy, with an answer that nobody
                                        takes, so that the broker has something to wait for

Ends with 0, or with 1 and one line that says what is wrong.
"""
import http.client
import re
import select
import socket
import struct
import sys
import time
import urllib.parse

SLOWEST_S = 1.0
PATIENCE_S = 30
IDLE = 100
# The program's own limit of silence, and some time for a busy machine.
SILENCE_S = 10 + 10
MIB = 1 << 20

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"'
SAMPLE = re.compile(rf"({NAME})(?:\{{({LABEL}(?:,{LABEL})*)\}})? (-?[0-9]+(?:\.[0-9]+)?)")
COMMENT = re.compile(rf"# (HELP|TYPE) ({NAME}) (.+)")
SUFFIXES = {"histogram": ("_bucket", "_sum", "_count"), "counter": ("",), "gauge": ("",)}


class Wrong(Exception):
    pass


def check(holds, what):
    if not holds:
        raise Wrong(what)


# ---- the format


class Metrics:
    """Samples by name and labels, of a text that keeps all rules."""

    def __init__(self, text):
        self.samples = {}
        self.types = {}
        self.family = None
        self.helped = set()
        check(text.endswith("\n"), "the last line has no end")
        for line in text[:-1].split("\n"):
            if line.startswith("#"):
                self.comment(line)
            else:
                self.sample(line)
        self.check_histograms()

    def comment(self, line):
        match = COMMENT.fullmatch(line)
        check(match, f"no comment of the format: {line}")
        kind, name, text = match.groups()
        if kind == "HELP":
            check(name not in self.helped, f"{name} has two blocks")
            self.helped.add(name)
            self.family = name
            return
        check(name == self.family and name not in self.types, f"TYPE of {name} out of place")
        check(text in SUFFIXES, f"{name} is of type {text}")
        check((text == "counter") == name.endswith("_total"), f"{name} is a {text}")
        self.types[name] = text

    def sample(self, line):
        match = SAMPLE.fullmatch(line)
        check(match, f"no sample: {line}")
        name, labels, value = match.groups()
        check(self.family in self.types, f"{line} stands behind no type")
        suffix = name[len(self.family):] if name.startswith(self.family) else None
        check(suffix in SUFFIXES[self.types[self.family]], f"{line} stands in {self.family}")
        key = f"{name}{{{labels}}}" if labels else name
        check(key not in self.samples, f"{key} stands twice")
        self.samples[key] = float(value)

    def check_histograms(self):
        last = {}
        for key, value in self.samples.items():
            match = re.fullmatch(rf'({NAME})_bucket\{{(?:(.*),)?le="([^"]*)"\}}', key)
            if not match:
                continue
            series = (match[1], match[2])
            bound = float(match[3].replace("+Inf", "inf"))
            before = last.get(series, (-1, 0))
            check(bound > before[0] and value >= before[1], f"{key} is not above the one before")
            last[series] = (bound, value)
        for (name, labels), (bound, value) in last.items():
            braces = f"{{{labels}}}" if labels else ""
            check(bound == float("inf"), f"{name} has no last bucket")
            check(self.samples.get(f"{name}_count{braces}") == value, f"{name} does not add up")
            check(f"{name}_sum{braces}" in self.samples, f"{name} has no sum")

    def counters(self):
        for key, value in self.samples.items():
            if re.match(rf"{NAME}(_total|_bucket|_count)(\{{|$)", key) and not key.startswith(
                    "kafka_server_socket_server_metrics_connection_count"):
                yield key, value


# ---- asking


def connect(url, timeout=PATIENCE_S):
    at = urllib.parse.urlsplit(url)
    return http.client.HTTPConnection(at.hostname, at.port, timeout=timeout)


def ask(url, path, method="GET", conn=None):
    conn = conn or connect(url)
    conn.request(method, path)
    answer = conn.getresponse()
    return answer.status, answer.read().decode(), answer


def metrics(url):
    status, text, answer = ask(url, "/metrics")
    check(status == 200, f"/metrics is {status}")
    check(answer.getheader("Content-Type") == "text/plain; version=0.0.4; charset=utf-8",
          f"/metrics is {answer.getheader('Content-Type')}")
    return Metrics(text)


def resident_bytes(pid):
    with open(f"/proc/{pid}/statm", encoding="ascii") as f:
        return int(f.read().split()[1]) * 4096


# ---- the commands


def value(url, *samples):
    found = metrics(url).samples
    for sample in samples:
        check(sample in found, f"there is no sample {sample}")
        print(f"{found[sample]:.15g}")


def expect(url, method, path, status, words):
    began = time.monotonic()
    got, text, answer = ask(url, path, method)
    took = time.monotonic() - began
    check(got == status, f"{method} {path} is {got}")
    check(words in text or method == "HEAD", f"{method} {path} says: {text}")
    check(int(answer.getheader("Content-Length")) > 0, f"{method} {path} has no length")
    check(took < SLOWEST_S, f"{method} {path} took {took:.1f} s")


def watch(url, pid):
    before = {}
    rounds = 0
    while not rounds or not select.select([sys.stdin], [], [], 0.1)[0]:
        expect(url, "GET", "/", 200, "/metrics")
        expect(url, "GET", "/healthz", 200, "ok\n")
        expect(url, "GET", "/readyz", 200, "ok\n")
        expect(url, "HEAD", "/metrics", 200, "")
        expect(url, "GET", "/nothing", 404, "not found")
        expect(url, "GET", "/metrics/", 404, "not found")
        expect(url, "POST", "/metrics", 405, "GET")
        now = dict(metrics(url).counters())
        for key, count in before.items():
            check(now.get(key, -1) >= count, f"{key} fell from {count} to {now.get(key)}")
        before = now
        rounds += 1
    check(resident_bytes(pid) < 200 * MIB, "it has grown")
    print(f"ok: {rounds} rounds of all pages")


def closed_by_peer(sockets, seconds):
    """How many of them the other side has closed, within so many seconds."""
    deadline = time.monotonic() + seconds
    left = list(sockets)
    while left and time.monotonic() < deadline:
        ready, _, _ = select.select(left, [], [], 0.5)
        left = [s for s in left if s not in ready or s.recv(1 << 16)]
    return len(sockets) - len(left)


def small_window(url, request):
    """A connection that has asked, and takes next to nothing of the answer."""
    at = urllib.parse.urlsplit(url)
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
    s.connect((at.hostname, at.port))
    s.sendall(request)
    return s


def crowd(url, pid):
    at = urllib.parse.urlsplit(url)
    before = resident_bytes(pid)
    idle = [socket.create_connection((at.hostname, at.port)) for _ in range(IDLE)]
    for i, s in enumerate(idle):
        s.sendall([b"", b"GET /met", b"GET / HTTP/1.1\r\nHost: x\r\nX: "][i % 3])
    slow = [small_window(url, b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n") for _ in range(8)]
    for _ in range(20):
        expect(url, "GET", "/healthz", 200, "ok\n")
        expect(url, "GET", "/metrics", 200, "messagesin")
        for s in slow:
            s.recv(1)
    grown = resident_bytes(pid) - before
    check(grown < 32 * MIB, f"{IDLE} idle and 8 slow connections took {grown >> 20} MiB")
    long = small_window(url, b"GET / HTTP/1.1\r\nX: " + 100000 * b"y")
    check(b" 431 " in long.recv(100), "a header without an end was not refused")
    gone = closed_by_peer(idle, SILENCE_S)
    check(gone == IDLE, f"{IDLE - gone} of {IDLE} idle connections are still open")
    print(f"ok: {IDLE} idle and {len(slow)} slow connections, {grown >> 10} KiB")


def status_or_none(url, path):
    try:
        return ask(url, path)[0]
    except (OSError, http.client.HTTPException):
        return None


def starts(url):
    seen = []
    print("watching", flush=True)
    deadline = time.monotonic() + PATIENCE_S
    while (not seen or seen[-1] != 200) and time.monotonic() < deadline:
        status = status_or_none(url, "/readyz")
        if status == 503:
            expect(url, "GET", "/healthz", 200, "ok\n")
        if status and (not seen or seen[-1] != status):
            seen.append(status)
    check(seen == [503, 200], f"/readyz was {seen}")
    print("ok: healthy while it starts, then ready")


def fetch_request(topic):
    """Fetch version 4 from offset 0 of partition 0, as much as there is."""
    name = topic.encode()
    body = struct.pack(">iiiib", -1, 0, 0, 64 * MIB, 0)
    body += struct.pack(f">ih{len(name)}siiqi", 1, len(name), name, 1, 0, 0, 64 * MIB)
    message = struct.pack(">hhih", 1, 4, 1, -1) + body
    return struct.pack(">i", len(message)) + message


def fails(url, bootstrap, topic):
    stuck = small_window(f"http://{bootstrap}", 8 * fetch_request(topic))
    check(stuck.recv(8), "there is no answer to a fetch")
    expect(url, "GET", "/healthz", 200, "ok\n")
    print("watching", flush=True)
    deadline = time.monotonic() + PATIENCE_S
    status = 200
    while status == 200 and time.monotonic() < deadline:
        status = status_or_none(url, "/healthz")
    check(status == 503, f"/healthz was {status} when all directories had failed")
    check(status_or_none(url, "/readyz") in (503, None), "it was ready nevertheless")
    print("ok: unhealthy")


def main():
    commands = {"value": value, "watch": watch, "crowd": crowd, "starts": starts, "fails": fails}
    try:
        commands[sys.argv[1]](*sys.argv[2:])
    except Wrong as wrong:
        print(f"WRONG: {wrong}")
        return 1
    return 0


sys.exit(main())
