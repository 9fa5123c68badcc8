#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Kafka Streams counts words and Kafka Connect copies files, with Apache Kafka's jars as they are.
# BROKER=kafka runs the same against Apache Kafka.
set -euo pipefail
# shellcheck source=tests/tools/broker.sh
. "$(dirname "$0")/../tools/broker.sh"

"$root/tests/tools/fetch-peers" kcat streams connect
cd "$work"
broker_start --set num.partitions=3 --set group.initial.rebalance.delay.ms=0
python3 "$root/tests/clients/streams/streams.py" words "$bootstrap" >words.out 2>&1 &
words=$!
status=0
python3 "$root/tests/clients/streams/streams.py" files "$bootstrap" || status=$?
wait "$words" || status=$?
cat words.out
[ "$status" = 0 ] || fail "streams.py"
broker_stop
