#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Three brokers on a real ZooKeeper: partitions move and leaders are elected at the word of Apache
# Kafka's kafka-reassign-partitions and kafka-leader-election (tests/cluster/moves.py).
set -euo pipefail
# shellcheck source=tests/tools/cluster.sh
. "$(dirname "$0")/../tools/cluster.sh"

cluster_run moves.py "a move or an election" "$root/tests/tools/kafka"
