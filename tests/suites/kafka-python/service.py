# SPDX-License-Identifier: Apache-2.0
"""Stands for a file of the tests that the source package lacks: a broker that runs already.

It is also where a race of the client's is mended (3.0.12, cluster.py): topics that are subscribed to
while the answer to a metadata request without them comes in are forgotten for five minutes, whatever
the broker. A consumer makes such a request when it is made, and another a tenth of a second later.
"""
from kafka.cluster import ClusterMetadata


class Cluster:
    """What stands in for two of ClusterMetadata's methods: what was not asked for is asked for."""

    metadata_request = ClusterMetadata.metadata_request
    update_metadata = ClusterMetadata.update_metadata

    def wanted(self):
        return self.need_all_topic_metadata, set(self._topics)

    def asking(self):
        self.asked = Cluster.wanted(self)
        return Cluster.metadata_request(self)

    def answered(self, response):
        Cluster.update_metadata(self, response)
        if Cluster.wanted(self) != self.asked:
            self.request_update()


ClusterMetadata.metadata_request = Cluster.asking
ClusterMetadata.update_metadata = Cluster.answered


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
