#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Three brokers on a real ZooKeeper are restarted one after the other, while Java's, librdkafka's
# and franz-go's clients write and read (tests/cluster/rolling.py).
set -euo pipefail
# shellcheck source=tests/tools/broker.sh
. "$(dirname "$0")/../tools/broker.sh"

tool=$root/tests/tools/zookeeper
stop_all() {
    [ ! -d "$work/zookeeper" ] || "$tool" stop "$work/zookeeper"
    at_exit
}
trap stop_all EXIT

"$root/tests/tools/fetch-peers" kafka-3.9 kafka kafka-python java librdkafka franz-go
mkdir -p "$work/zookeeper"
"$tool" start "$work/zookeeper" "$(free_port)"
"${STRANDLINE_PEERS:-$HOME/.cache/strandline-peers}/kafka-python/bin/python" \
    "$root/tests/cluster/rolling.py" "${STRANDLINE:-$root/build/strandline}" \
    "$("$tool" servers "$work/zookeeper")" "$work" "$root/tests/tools/kafka" ||
    { tail -n 15 "$work"/b?.log >&2; fail "somebody noticed"; }
