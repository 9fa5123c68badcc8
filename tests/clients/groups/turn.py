# SPDX-License-Identifier: Apache-2.0
"""Metadata that is asked for behind what takes long is as of when it is answered.

    turn.py BOOTSTRAP

A member joins, which takes the initial delay of its group, and in the same breath asks for all
topics. One that is made by somebody else meanwhile is among them.
"""
import os
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "differential"))
from peer import Peer  # noqa: E402
from schemas import decode_response  # noqa: E402

TOPIC = "made-meanwhile"
JOIN = {"group_id": "turn", "session_timeout_ms": 10000, "rebalance_timeout_ms": 10000,
        "member_id": "", "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": b""}]}


def answer(peer, api, version):
    return decode_response(api, version, peer.receive(struct.unpack(">i", peer.receive(4))[0]))[1]


def main():
    peer, other = Peer("broker", sys.argv[1], False), Peer("broker", sys.argv[1], False)
    peer.begin()
    peer.send_silently(peer.frame("JoinGroup", 2, JOIN))
    peer.send_silently(peer.frame("Metadata", 4, {"topics": None,
                                                  "allow_auto_topic_creation": False}))
    made = other.make_topic(TOPIC)["topics"][0]
    assert made["error_code"] == 0, made
    joined = answer(peer, "JoinGroup", 2)
    assert joined["error_code"] == 0, joined
    names = [t["name"] for t in answer(peer, "Metadata", 4)["topics"]]
    assert TOPIC in names, f"{TOPIC} is not in {names}"


if __name__ == "__main__":
    main()
