#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Three brokers on a real ZooKeeper: replicas move no faster than a throttle allows, at the word of
# Apache Kafka's kafka-reassign-partitions and of our tool (tests/cluster/throttles.py).
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
"${STRANDLINE_PEERS:-$HOME/.cache/strandline-peers}/kafka-python/bin/python" \
    "$root/tests/cluster/throttles.py" "${STRANDLINE:-$root/build/strandline}" \
    "$("$tool" servers "$work/zookeeper")" "$work" "$root/tests/tools/kafka" ||
    { tail -n 15 "$work"/b?.log >&2; fail "a throttle"; }
