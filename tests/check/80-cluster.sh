#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Three brokers on a real ZooKeeper: an idempotent producer writes with acks=all while brokers are
# stopped, killed and paused (tests/cluster/faults.py). CLUSTER_SCENARIOS chooses some of them.
set -euo pipefail
# shellcheck source=tests/tools/cluster.sh
. "$(dirname "$0")/../tools/cluster.sh"

# shellcheck disable=SC2086 # names without spaces
cluster_run faults.py "a promise was broken" ${CLUSTER_SCENARIOS:-}
