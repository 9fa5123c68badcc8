#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a hostile peer may try, while a well-behaved client goes on working beside it.

    hostile.py BOOTSTRAP PID RSS_MIB

Each attack runs while another process sends one Metadata, one Produce and one Fetch after the
other on a connection of its own and opens new ones: none of its requests may take over a second.
After each attack the broker PID has to be alive with less than RSS_MIB of memory ever used. At the
end many come at once, and then it has to hold no descriptor more than before. Seeded; the last line
counts.
"""
import multiprocessing
import os
import pathlib
import random
import select
import signal
import socket
import struct
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tools" / "capture"))

from names import API_KEYS  # noqa: E402 (the path is set above)
from schemas import FLEXIBLE_FROM, decode_response, encode_request  # noqa: E402

CONNECTIONS = 10000
SLOWEST_S = 1.0
PATIENCE_S = 20
TOPIC = "victim"
HUGE = 0x7FFFFFFF
MIB = 1 << 20


def crc32c_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


def crc32c(data, table=crc32c_table()):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ table[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def varint(value):
    value, out = value << 1, b""
    while value > 0x7F:
        value, out = value >> 7, out + bytes([value & 0x7F | 0x80])
    return out + bytes([value])


def batch(value):
    record = b"\0" + varint(0) + varint(0) + b"\1" + varint(len(value)) + value + varint(0)
    now = int(time.time() * 1000)
    body = struct.pack(">hiqqqhii", 0, 0, now, now, -1, -1, -1, 1) + varint(len(record)) + record
    tail = struct.pack(">ibI", 0, 2, crc32c(body)) + body
    return struct.pack(">qi", 0, len(tail)) + tail


def framed(data):
    return struct.pack(">i", len(data)) + data


def request(name, version, values):
    return framed(encode_request(name, API_KEYS[name], version, 7, "hostile", values))


def header(key, version, flexible=False):
    return struct.pack(">hhih", key, version, 7, 2) + b"me" + (b"\0" if flexible else b"")


class Peer:
    """A connection that only knows bytes."""

    def __init__(self, address, receive_buffer=0):
        self.socket = socket.socket()
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(PATIENCE_S)
        self.socket.connect(address)

    def send(self, data):
        """Send, unless the broker has had enough."""
        try:
            self.socket.sendall(data)
            return True
        except OSError:
            return False

    def answer(self):
        """Return one frame, b"" if the broker closed, or None if it says nothing in time."""
        try:
            size = self.exactly(4)
            return self.exactly(struct.unpack(">i", size)[0]) if size else b""
        except socket.timeout:
            return None
        except OSError:
            return b""

    def exactly(self, count):
        data = b""
        while len(data) < count:
            part = self.socket.recv(count - len(data))
            if not part:
                return b""
            data += part
        return data

    def finish(self):
        """Say that no more comes, and wait for the answer or the end; False if there is none."""
        try:
            self.socket.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        answer = self.answer()
        self.close()
        return answer is not None

    def close(self):
        self.socket.close()


def produce_request(value):
    return request("Produce", 7, {"transactional_id": None, "acks": -1, "timeout_ms": 30000,
                                  "topics": [{"name": TOPIC, "partitions": [
                                      {"index": 0, "records": batch(value)}]}]})


# ---- the client that must not notice ----


def victim(address, slowest, served, stop):
    """Keep the slowest request in `slowest`; a request that fails counts as a minute."""
    asked = [
        ("Metadata", 1, {"topics": [{"name": TOPIC}]}),
        ("Produce", 7, {"transactional_id": None, "acks": -1, "timeout_ms": 30000, "topics": [{
            "name": TOPIC, "partitions": [{"index": 0, "records": batch(b"v" * 30000)}]}]}),
        ("Fetch", 4, {"replica_id": -1, "max_bytes": 40000, "topics": [{
            "topic": TOPIC, "partitions": [{"partition": 0, "partition_max_bytes": 40000}]}]}),
    ]
    frames = [(name, version, request(name, version, values)) for name, version, values in asked]
    peer = Peer(address)
    while not stop.value:
        for name, version, frame in frames:
            began = time.monotonic()
            if name == "Metadata":  # As often on a new connection.
                peer.close()
                peer = Peer(address)
            ok = peer.send(frame) and is_good(name, version, peer.answer())
            slowest.value = max(slowest.value, time.monotonic() - began if ok else 60)
            served.value += 1
        time.sleep(0.01)


def is_good(name, version, answer):
    if not answer:
        return False
    _, found = decode_response(name, version, answer)
    part = found.get("topics", found.get("responses"))[0]
    codes = [part.get("error_code", 0)] + [p["error_code"] for p in part["partitions"]]
    return codes == [0] * len(codes)


class Beside:
    """A victim for the length of a with statement."""

    def __init__(self, address):
        self.slowest = multiprocessing.Value("d", 0)
        self.served = multiprocessing.Value("i", 0)
        self.stop = multiprocessing.Value("b", 0)
        arguments = (address, self.slowest, self.served, self.stop)
        self.process = multiprocessing.Process(target=victim, args=arguments, daemon=True)

    def __enter__(self):
        self.process.start()
        return self

    def __exit__(self, *_):
        self.stop.value = 1
        self.process.join(2 * PATIENCE_S)
        if self.process.is_alive():
            self.slowest.value = 60
            self.process.kill()


# ---- attacks: each returns what it found wrong, or None ----


def connections(address):
    """Ten thousand connections; half are silent, half begin a length."""
    peers = []
    for i in range(CONNECTIONS):
        peers.append(Peer(address))
        if i % 2:
            peers[-1].send(b"\0\0")
    time.sleep(2)
    gone = sum(1 for peer in peers if not peer.send(b"\0"))
    close_all(peers)
    return f"{gone} connections were not kept" if gone else None


def half_frames(address):
    """Two thousand requests that end in the middle."""
    peers = [Peer(address) for _ in range(2000)]
    for peer in peers:
        peer.send(struct.pack(">i", 1000) + header(3, 1) + b"\0" * 500)
    time.sleep(2)
    close_all(peers)


def huge_counts(address):
    """Every API and version with two billion elements where its first array may be."""
    unanswered = 0
    for key in list(range(0, 93)):
        for version in range(0, 19):
            for body in (struct.pack(">i", HUGE), b"\xff\xff\xff\xff\x0f", b"\0" * 9 +
                         struct.pack(">i", HUGE), struct.pack(">i", -2)):
                peer = Peer(address)
                peer.send(framed(header(key, version, True) + body * 4))
                unanswered += not peer.finish()
    return f"{unanswered} requests without an answer or an end" if unanswered else None


def nested_counts(address):
    """Counts that lie inside of good requests: each length of each is replaced."""
    good = request("Metadata", 1, {"topics": [{"name": "x"}]})
    produce = request("Produce", 7, {"transactional_id": None, "acks": 1, "topics": [
        {"name": TOPIC, "partitions": [{"index": 0, "records": batch(b"x")}]}]})
    unanswered = 0
    for frame in (good, produce):
        for at in range(4, len(frame) - 4):
            for value in (HUGE, -1, -2, 0x00FFFFFF):
                peer = Peer(address)
                peer.send(frame[:at] + struct.pack(">i", value) + frame[at + 4:])
                unanswered += not peer.finish()
    return f"{unanswered} requests without an answer or an end" if unanswered else None


def many_names(address):
    """Requests of a megabyte at most whose answers could be thousands of times as large."""
    # The topic of groups has 50 partitions; every other entry begins another topic.
    inside, once = "__consumer_offsets", {"partitions": [{"partition": 0}]}
    asked = [
        ("Fetch", 4, {"replica_id": -1, "max_bytes": MIB, "topics": [
            dict(once, topic=f"t{i}") for i in range(20000)]}),
        ("DescribeLogDirs", 1, {"topics": [
            {"topic": (TOPIC, inside)[i % 2], "partitions": [0]} for i in range(20000)]}),
        ("Metadata", 1, {"topics": [{"name": inside}] * 50000}),
        ("CreateTopics", 2, {"timeout_ms": 1000, "topics": [
            {"name": f"t{i}"} for i in range(50000)]}),
    ]
    for name, version, values in asked:
        peer = Peer(address)
        peer.send(request(name, version, values))
        answer = peer.answer()
        peer.close()
        if not answer:
            return f"{name} without an answer"
        decode_response(name, version, answer)
    return None


def sizes(address):
    """Lengths that no request has: the connection ends."""
    for size in (HUGE, 0x40000000, 100 * MIB + 1, -1, -HUGE - 1, 0, 1, 7):
        peer = Peer(address)
        peer.send(struct.pack(">i", size) + b"\0" * 64)
        answer = peer.answer()
        peer.close()
        if answer != b"":
            return f"a frame of {size} bytes did not end the connection"
    return None


def unknown(address):
    """Keys and versions that nobody serves: an end, and for ApiVersions error 35."""
    for key, version in ((999, 0), (-1, 0), (32767, 0), (0, 32767), (3, -1), (1, 99)):
        peer = Peer(address)
        peer.send(framed(header(key, version) + b"\0" * 20))
        answer = peer.answer()
        peer.close()
        if answer != b"":
            return f"key {key} version {version}: {answer!r}"
    peer = Peer(address)
    peer.send(framed(header(18, 99)))
    answer = peer.answer()
    peer.close()
    good = answer and struct.unpack(">ih", answer[:6]) == (7, 35)
    return None if good else "ApiVersions 99 is not answered by error 35"


def never_read(address):
    """Five hundred peers ask for a gigabyte each and read nothing."""
    fetch = request("Fetch", 4, {"replica_id": -1, "max_bytes": MIB, "topics": [{
        "topic": TOPIC, "partitions": [{"partition": 0, "partition_max_bytes": MIB}]}]})
    peers = [Peer(address, 4096) for _ in range(500)]
    for peer in peers:
        peer.socket.settimeout(0.05)
        peer.send(fetch * 1000)
    time.sleep(3)
    close_all(peers)


def slow(address):
    """Two hundred peers that send a byte a second."""
    frame = request("Metadata", 1, {"topics": [{"name": "x" * 100}]})
    peers = [Peer(address) for _ in range(200)]
    for at in range(8):
        for peer in peers:
            peer.send(frame[at:at + 1])
        time.sleep(1)
    close_all(peers)


def hoard(address):
    """Four hundred frames of 90 MiB, of which as much comes as the broker takes, and no end."""
    peers = [Peer(address) for _ in range(400)]
    end, part = time.monotonic() + 6, b"\0" * (64 << 10)
    for peer in peers:
        peer.send(struct.pack(">i", 90 * MIB))
        peer.socket.setblocking(False)
    while time.monotonic() < end and peers:
        _, writable, _ = select_many(peers)
        for peer in writable:
            if not send_some(peer, part):
                peers.remove(peer)
        time.sleep(0.002)
    close_all(peers)


def select_many(peers):
    poll = select.poll()
    by_fd = {peer.socket.fileno(): peer for peer in peers}
    for fd in by_fd:
        poll.register(fd, select.POLLOUT)
    return None, [by_fd[fd] for fd, _ in poll.poll(100)], None


def send_some(peer, part):
    try:
        peer.socket.send(part)
        return True
    except BlockingIOError:
        return True
    except OSError:
        peer.close()
        return False


def garbage(address):
    """Random bytes, an HTTP request, the beginning of TLS."""
    rng, unanswered = random.Random(60), 0
    for i in range(3000):
        data = rng.randbytes(rng.randrange(1, 300))
        if i % 3 == 0:  # A plausible length, so that the bytes are parsed.
            data = framed(struct.pack(">hh", rng.randrange(93), rng.randrange(19)) + data)
        peer = Peer(address)
        peer.send((b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\0", data)[min(i, 2)])
        unanswered += not peer.finish()
    return f"{unanswered} connections without an end" if unanswered else None


def churn(address):
    """Five thousand connections that are reset at once."""
    for _ in range(5000):
        peer = Peer(address)
        peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        peer.send(b"\0\0\0\x20")
        peer.close()


def parked(address):
    """Fetches that wait do not hold back a produce behind them, and a hundred peers with 300 each."""
    where = [{"topic": TOPIC, "partitions": [{"partition": 0, "partition_max_bytes": HUGE}]}]
    wait = request("Fetch", 4, {"replica_id": -1, "max_wait_ms": 8000, "min_bytes": HUGE,
                                "max_bytes": HUGE, "topics": where})
    other, peers = Peer(address), [Peer(address) for _ in range(100)]
    other.send(produce_request(b"before"))
    start = decode_response("Produce", 7, other.answer())[1]["responses"][0]["partitions"][0]
    where[0]["partitions"][0]["fetch_offset"] = start["base_offset"]
    look = request("Fetch", 4, {"replica_id": -1, "max_bytes": HUGE, "topics": where})
    peers[0].send(wait * 99 + produce_request(b"parked"))
    found, end = False, time.monotonic() + 4
    while not found and time.monotonic() < end:
        time.sleep(0.1)
        other.send(look)
        found = b"parked" in (other.answer() or b"")
    for peer in peers[1:]:
        peer.send(wait * 300)
    time.sleep(1)
    close_all(peers + [other])
    return None if found else "the produce behind them was not carried out"


def close_all(peers):
    for peer in peers:
        peer.close()


ATTACKS = (sizes, many_names, unknown, garbage, huge_counts, nested_counts, half_frames, never_read,
           slow, parked, churn, hoard, connections)


# ---- the broker's side ----


def peak_mib(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) // 1024
    return 0


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def settle(pid, expected):
    """Wait for closed connections to be noticed; return the descriptors that are left over."""
    end = time.monotonic() + PATIENCE_S
    while descriptors(pid) > expected and time.monotonic() < end:
        time.sleep(0.1)
    return descriptors(pid) - expected


def create_topics(address):
    peer = Peer(address)
    peer.send(request("CreateTopics", 2, {"timeout_ms": 30000, "topics": [
        {"name": TOPIC, "num_partitions": 1, "replication_factor": 1}]}))
    peer.answer()
    # Whoever first asks for a coordinator makes the broker create its topic, and open its files.
    peer.send(request("FindCoordinator", 0, {"key": "some group"}))
    peer.answer()
    peer.close()
    with Beside(address) as beside:
        time.sleep(1)
    assert beside.slowest.value < SLOWEST_S, "not even without an attack"


def rush(address, pid):
    """Three thousand connections while the broker stands still: the system takes them all.

    Whoever finds the queue full waits for a second before it tries again.
    """
    slowest, peers = 0, []
    os.kill(pid, signal.SIGSTOP)
    try:
        while len(peers) < 3000 and slowest < SLOWEST_S / 2:
            began = time.monotonic()
            peers.append(Peer(address))
            slowest = max(slowest, time.monotonic() - began)
    except OSError:
        slowest = PATIENCE_S
    finally:
        os.kill(pid, signal.SIGCONT)
    close_all(peers)
    good = slowest < SLOWEST_S / 2
    print(f"{'ok' if good else 'FAILED'}: rush: while the broker stood still it was given "
          f"{len(peers)} connections, the slowest in {slowest * 1000:.0f} ms", flush=True)
    return good


def run(attack, address, pid, limit_mib):
    began = time.monotonic()
    with Beside(address) as beside:
        wrong = attack(address)
    peak = peak_mib(pid)
    if beside.slowest.value >= SLOWEST_S:
        wrong = f"a request beside it took {beside.slowest.value:.1f} s"
    if peak > limit_mib:
        wrong = f"the broker used {peak} MiB, more than {limit_mib}"
    print(f"{'FAILED' if wrong else 'ok'}: {attack.__name__}: {wrong or attack.__doc__} "
          f"[{time.monotonic() - began:.1f} s; beside it {beside.served.value} requests, slowest "
          f"{beside.slowest.value * 1000:.0f} ms; peak {peak} MiB]", flush=True)
    return not wrong


def main():
    host, port = sys.argv[1].rsplit(":", 1)
    address, pid, limit_mib = (host, int(port)), int(sys.argv[2]), int(sys.argv[3])
    create_topics(address)
    time.sleep(0.5)
    before = descriptors(pid)
    attacks = [a for a in ATTACKS if len(sys.argv) < 5 or a.__name__ in sys.argv[4:]]
    passed = sum(run(attack, address, pid, limit_mib) for attack in attacks)
    passed += rush(address, pid)
    left = settle(pid, before)
    passed += left <= 0
    print(f"{'ok' if left <= 0 else 'FAILED'}: {max(left, 0)} descriptors are left over")
    failed = len(attacks) + 2 - passed
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
