#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Three brokers on a real ZooKeeper: an idempotent producer writes with acks=all while brokers are
# stopped, killed and paused (tests/cluster/faults.py). CLUSTER_SCENARIOS chooses some of them.
set -euo pipefail
# shellcheck source=tests/tools/broker.sh
. "$(dirname "$0")/../tools/broker.sh"

tool=$root/tests/tools/zookeeper
stop_all() {
    [ ! -d "$work/zookeeper" ] || "$tool" stop "$work/zookeeper"
    at_exit
}
trap stop_all EXIT

"$root/tests/tools/fetch-peers" kafka-3.9 kafka-python
mkdir -p "$work/zookeeper"
"$tool" start "$work/zookeeper" "$(free_port)"
# shellcheck disable=SC2086 # names without spaces
"${STRANDLINE_PEERS:-$HOME/.cache/strandline-peers}/kafka-python/bin/python" \
    "$root/tests/cluster/faults.py" "${STRANDLINE:-$root/build/strandline}" \
    "$("$tool" servers "$work/zookeeper")" "$work" ${CLUSTER_SCENARIOS:-} ||
    { tail -n 15 "$work"/b?.log >&2; fail "a promise was broken"; }
