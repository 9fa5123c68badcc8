# SPDX-License-Identifier: Apache-2.0
"""Commits and questions for the offset in one breath: each is answered as if it came alone.

    pipelined.py BOOTSTRAP

librdkafka sends an OffsetFetch right behind its commits. A commit is answered when it is on the
device; what is asked behind it must know of it, though nobody has been told yet.
"""
import os
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "differential"))
from peer import Peer  # noqa: E402
from schemas import decode_response  # noqa: E402

TOPIC, GROUP = "pipelined", "pipelined"
ROUNDS = 50


def commit(offset):
    partition = {"partition_index": 0, "committed_offset": offset, "committed_leader_epoch": -1,
                 "committed_metadata": ""}
    return {"group_id": GROUP, "generation_id": -1, "member_id": "", "group_instance_id": None,
            "topics": [{"name": TOPIC, "partitions": [partition]}]}


def asked():
    return {"group_id": GROUP, "topics": [{"name": TOPIC, "partition_indexes": [0]}],
            "require_stable": False}


def main():
    peer = Peer("broker", sys.argv[1], False)
    peer.begin()
    peer.make_topic(TOPIC)
    while peer.ask("FindCoordinator", 3, {"key": GROUP, "key_type": 0})["error_code"] == 15:
        pass
    while peer.ask("OffsetFetch", 7, asked())["error_code"] in (14, 15, 16):
        pass
    frames = []
    for offset in range(1, ROUNDS + 1):
        frames.append(peer.frame("OffsetCommit", 7, commit(offset)))
        frames.append(peer.frame("OffsetFetch", 7, asked()))
    peer.socket.sendall(b"".join(struct.pack(">i", len(frame)) + frame for frame in frames))
    for offset in range(1, ROUNDS + 1):
        for api in ("OffsetCommit", "OffsetFetch"):
            answer = peer.receive(struct.unpack(">i", peer.receive(4))[0])
            said = decode_response(api, 7, answer)[1]["topics"][0]["partitions"][0]
            assert said["error_code"] == 0, f"{api} of {offset}: {said}"
        got = said["committed_offset"]
        assert got == offset, f"{offset} was committed, and the question behind it got {got}"


if __name__ == "__main__":
    main()
