# SPDX-License-Identifier: Apache-2.0
"""Stands for a file of the tests that the source package lacks: a broker that runs already."""


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
