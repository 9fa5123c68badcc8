#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Three brokers on a real ZooKeeper, each in a rack of its own: kcat and Java's console consumer
# read at a follower in theirs (tests/cluster/racks.py).
set -euo pipefail
# shellcheck source=tests/tools/broker.sh
. "$(dirname "$0")/../tools/broker.sh"

tool=$root/tests/tools/zookeeper
stop_all() {
    [ ! -d "$work/zookeeper" ] || "$tool" stop "$work/zookeeper"
    at_exit
}
trap stop_all EXIT

"$root/tests/tools/fetch-peers" kafka kafka-3.9 kafka-python kcat librdkafka-new
mkdir -p "$work/zookeeper"
"$tool" start "$work/zookeeper" "$(free_port)"
export PYTHONPATH=$root/tests/clients
"${STRANDLINE_PEERS:-$HOME/.cache/strandline-peers}/kafka-python/bin/python" \
    "$root/tests/cluster/racks.py" "${STRANDLINE:-$root/build/strandline}" \
    "$("$tool" servers "$work/zookeeper")" "$work" ||
    { tail -n 15 "$work"/b?.log >&2; fail "a consumer and its rack"; }
