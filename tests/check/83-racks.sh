#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Three brokers on a real ZooKeeper, each in a rack of its own: kcat and Java's console consumer
# read at a follower in theirs (tests/cluster/racks.py).
set -euo pipefail
# shellcheck source=tests/tools/cluster.sh
. "$(dirname "$0")/../tools/cluster.sh"

"$root/tests/tools/fetch-peers" kafka kcat librdkafka-new
export PYTHONPATH=$root/tests/clients
cluster_run racks.py "a consumer and its rack"
