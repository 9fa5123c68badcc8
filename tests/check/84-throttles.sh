#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Three brokers on a real ZooKeeper: replicas move no faster than a throttle allows, at the word of
# Apache Kafka's kafka-reassign-partitions and of our tool (tests/cluster/throttles.py).
set -euo pipefail
# shellcheck source=tests/tools/cluster.sh
. "$(dirname "$0")/../tools/cluster.sh"

cluster_run throttles.py "a throttle" "$root/tests/tools/kafka"
