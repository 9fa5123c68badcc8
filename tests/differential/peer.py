# SPDX-License-Identifier: Apache-2.0
"""One of the two brokers that are compared: its connection, and what it called things."""
import os
import socket
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "tools", "capture"))
from names import API_KEYS, API_NAMES  # noqa: E402
from schemas import decode_response, encode_request  # noqa: E402

ANSWER_SECONDS = 20
BARRIER = "barrier"
CLOSED, MUTE = "closed", "no answer"


class Peer:
    """Sends requests in order; an outcome is an answer, CLOSED or MUTE.

    `seen` holds what an earlier answer assigned and a later request needs (topic ids, producer
    ids, fetch sessions), by a name that both brokers share. `settles` says that a change is in
    force only some time after its answer: then each is awaited with `settle`.
    """

    def __init__(self, name, address, settles):
        self.name, self.settles = name, settles
        self.host, port = address.rsplit(":", 1)
        self.port = int(port)
        self.socket, self.correlation, self.changes = None, 0, 0
        self.seen = {}
        self.ranges = {}

    def connect(self):
        self.socket = socket.create_connection((self.host, self.port), timeout=ANSWER_SECONDS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def make_topic(self, name):
        """A topic of one partition, at once."""
        return self.ask("CreateTopics", 5, {"topics": [{
            "name": name, "num_partitions": 1, "replication_factor": 1, "assignments": [],
            "configs": []}], "timeout_ms": 10000, "validate_only": False})

    def receive(self, size):
        data = b""
        while len(data) < size:
            part = self.socket.recv(size - len(data))
            if not part:
                raise ConnectionError
            data += part
        return data

    def frame(self, api, version, values):
        """Return a frame whose body is a dict to encode, or bytes behind an encoded header."""
        self.correlation += 1
        return encode_request(api, API_KEYS[api], version, self.correlation, "differ", values)

    def exchange(self, frame):
        """Send one frame and return the answer's bytes, or CLOSED or MUTE."""
        if self.socket is None:
            self.connect()
        try:
            self.socket.sendall(struct.pack(">i", len(frame)) + frame)
            return self.receive(struct.unpack(">i", self.receive(4))[0])
        except (ConnectionError, TimeoutError) as error:
            self.socket.close()
            self.socket = None
            return MUTE if isinstance(error, TimeoutError) else CLOSED

    def send_silently(self, frame):
        """Send a frame that has no answer; the next exchange tells whether that was right."""
        if self.socket is None:
            self.connect()
        self.socket.sendall(struct.pack(">i", len(frame)) + frame)

    def ask(self, api, version, values):
        answer = self.exchange(self.frame(api, version, values))
        assert isinstance(answer, bytes), f"{self.name} gave up on {api}: {answer}"
        return decode_response(api, version, answer)[1]

    def begin(self):
        offered = self.ask("ApiVersions", 0, {})["api_keys"]
        self.ranges = {
            API_NAMES[a["api_key"]]: range(a["min_version"], a["max_version"] + 1)
            for a in offered if a["api_key"] in API_NAMES
        }
        self.ask("CreateTopics", 7, {"timeout_ms": 30_000, "topics": [
            {"name": BARRIER, "num_partitions": 1, "replication_factor": 1}]})
        self.settle()
        while self.ask("FindCoordinator", 3, {"key": "g"})["error_code"]:
            time.sleep(0.02)  # the topic of groups is made when the first is asked for
        while self.ask("InitProducerId", 4, {
                "transactional_id": None, "transaction_timeout_ms": 1000, "producer_id": -1,
                "producer_epoch": -1})["error_code"]:
            time.sleep(0.02)  # a new KRaft broker has no producer ids yet

    def settle(self):
        """Wait until every change that was answered is in force.

        KRaft's brokers replay one log of metadata, one image after the other. When the second of
        two later changes can be seen, whatever came before the first has been carried out.
        """
        for _ in range(2 if self.settles else 0):
            self.changes += 1
            self.await_change(str(1_000_000 + self.changes))

    def await_change(self, value):
        self.ask("IncrementalAlterConfigs", 1, {"resources": [
            {"resource_type": 2, "resource_name": BARRIER, "configs": [
                {"name": "retention.ms", "config_operation": 0, "value": value}]}]})
        deadline = time.monotonic() + ANSWER_SECONDS
        while time.monotonic() < deadline:
            found = self.ask("DescribeConfigs", 4, {"resources": [
                {"resource_type": 2, "resource_name": BARRIER,
                 "configuration_keys": ["retention.ms"]}]})["results"][0]["configs"]
            if found and found[0]["value"] == value:
                return
            time.sleep(0.002)
        raise TimeoutError("a change did not come into force")
