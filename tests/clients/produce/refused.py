# SPDX-License-Identifier: Apache-2.0
"""A batch that follows one which was refused for now is refused for now, too.

    refused.py BOOTSTRAP

Five batches of an idempotent producer are on their way, and the first meets a broker that does not
lead yet. The next one is out of order then, and the client is not to blame: it has to send both
again. Who leaves a gap without such a reason is told so, as is another producer.
"""
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "differential"))
from peer import Peer  # noqa: E402
from record_batch import batch, record  # noqa: E402

TOPIC = "refused"
NOT_THERE, NOT_LEADER, OUT_OF_ORDER = 3, 6, 45
PATIENCE_S = 5


def produce_as(peer, version, topic, producer, sequence):
    data = batch([record(0)], int(time.time() * 1000), producer_id=producer, producer_epoch=0,
                 base_sequence=sequence)
    return peer.ask("Produce", version, {
        "transactional_id": None, "acks": -1, "timeout_ms": 10000, "topics": [
            {"name": topic, "partitions": [{"index": 0, "records": data}]}]})


def produce(peer, topic, producer, sequence):
    answer = produce_as(peer, 7, topic, producer, sequence)
    return answer["responses"][0]["partitions"][0]["error_code"]


def main():
    peer = Peer("broker", sys.argv[1], False)
    peer.begin()
    peer.make_topic(TOPIC)
    one, other = (peer.ask("InitProducerId", 1, {
        "transactional_id": None, "transaction_timeout_ms": -1})["producer_id"] for _ in range(2))
    steps = (
        ("a gap", TOPIC, one, 1, OUT_OF_ORDER),
        ("a batch for what is not there", "not there", one, 0, NOT_THERE),
        ("the batch behind it", TOPIC, one, 1, NOT_LEADER),
        ("another producer's gap", TOPIC, other, 1, OUT_OF_ORDER),
        ("the first one again", TOPIC, one, 0, 0),
        ("the one behind it again", TOPIC, one, 1, 0),
        ("a gap soon after", TOPIC, one, 7, NOT_LEADER),
        ("a gap that stays", TOPIC, one, 7, OUT_OF_ORDER),
    )
    for what, topic, producer, sequence, wanted in steps:
        if what == "a gap that stays":
            time.sleep(PATIENCE_S)
        got = produce(peer, topic, producer, sequence)
        assert got == wanted, f"{what}: error {got} instead of {wanted}"


if __name__ == "__main__":
    main()
