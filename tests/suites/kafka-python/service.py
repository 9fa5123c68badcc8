# SPDX-License-Identifier: Apache-2.0
"""Stands for a file of the tests that the source package lacks: a broker that runs already.

It is also where the tests' consumers are made to find out the broker's version themselves. One that
is told it asks for metadata before it knows its topics, and forgets them if the answer comes at that
moment: it then asks for nothing for five minutes, whatever the broker (3.0.12, cluster.py's
update_metadata). One that has found out the version has had its first answer by then.
"""
import kafka


def find_out_the_version(init):
    def consumer_init(self, *topics, **configs):
        configs.pop("api_version", None)
        init(self, *topics, **configs)

    return consumer_init


kafka.KafkaConsumer.__init__ = find_out_the_version(kafka.KafkaConsumer.__init__)


class ExternalService:
    """What the fixtures want of a broker that they do not start themselves."""

    def __init__(self, host, port):
        self.host, self.port = host, port

    def open(self):
        pass

    def close(self):
        pass


class SpawnedService:
    """Named by the fixtures, and never made when there is a broker already."""
