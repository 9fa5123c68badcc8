#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The same requests, right and wrong, to Apache Kafka and to the broker: the answers are the same,
# field by field, or tests/differential/accepted.txt says why not. Arguments go to the comparison.
set -euo pipefail
# shellcheck source=tests/tools/broker.sh
. "$(dirname "$0")/../tools/broker.sh"

keys=(node.id=1 num.partitions=2 offsets.topic.num.partitions=1 transaction.state.log.min.isr=1
    offsets.topic.replication.factor=1 transaction.state.log.replication.factor=1
    transaction.state.log.num.partitions=1 group.initial.rebalance.delay.ms=0)

end() {
    "$root/tests/tools/kafka" stop "$work/kafka"
    at_exit
}
trap end EXIT

"$root/tests/tools/fetch-peers" kafka
port=$(free_port)
"$root/tests/tools/kafka" start kafka "$work/kafka" "$port" "${keys[@]}" || fail "no Kafka"
settings=()
for key in "${keys[@]}"; do
    settings+=(--set "$key")
done
broker_start "${settings[@]}"
python3 "$root/tests/differential/differential.py" "127.0.0.1:$port" "$bootstrap" "$@"
broker_stop
