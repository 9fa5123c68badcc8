#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Three brokers on a real ZooKeeper are restarted one after the other, while Java's, librdkafka's
# and franz-go's clients write and read (tests/cluster/rolling.py).
set -euo pipefail
# shellcheck source=tests/tools/cluster.sh
. "$(dirname "$0")/../tools/cluster.sh"

"$root/tests/tools/fetch-peers" kafka java librdkafka franz-go
cluster_run rolling.py "somebody noticed" "$root/tests/tools/kafka"
