#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fifty consumers of five kinds join one group, leave, are killed or stand still, and come back, for
# CROWD_SECONDS (60), while twenty partitions are written.
set -euo pipefail
# shellcheck source=tests/tools/broker.sh
. "$(dirname "$0")/../tools/broker.sh"

"$root/tests/tools/fetch-peers" kcat java kafka librdkafka franz-go kafka-python kafkajs
cd "$work"
broker_start --set num.partitions=20 --set offsets.topic.num.partitions=1 \
    --set group.initial.rebalance.delay.ms=0
python3 "$root/tests/clients/groups/crowd.py" churn "$bootstrap" "${CROWD_SECONDS:-60}"
broker_stop
"$root/tests/tools/kafka" tool kafka org.apache.kafka.tools.DumpLogSegments --offsets-decoder \
    --files "$(ls data/__consumer_offsets-0/*.log | paste -sd,)" >dump 2>dump.err || fail "no dump"
python3 "$root/tests/clients/groups/crowd.py" history dump
