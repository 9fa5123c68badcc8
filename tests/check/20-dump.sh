#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Apache Kafka's own dump tool reads the segments, indexes and snapshots that the broker wrote under
# load with rolls, a kill -9 and a clean stop in between, and finds nothing wrong. BROKER=kafka runs
# the same on Kafka's own files.
set -euo pipefail
# shellcheck disable=SC2119 source=tests/tools/broker.sh
. "$(dirname "$0")/../tools/broker.sh"

TOPIC=dump
RECORDS=8000 # of each load
RECORD_BYTES=1000
SEGMENT_BYTES=1048576 # the least that Kafka 4 takes

load() { # CODEC
    "$root/tests/tools/kafka" tool kafka org.apache.kafka.tools.ProducerPerformance \
        --topic "$TOPIC" --num-records "$RECORDS" --record-size "$RECORD_BYTES" --throughput -1 \
        --producer-props "bootstrap.servers=$bootstrap" acks=all "compression.type=$1" \
        batch.size=16384 linger.ms=5 >"$work/load.log" 2>&1 || { cat "$work/load.log" >&2; fail load; }
    tail -n 1 "$work/load.log"
    sent=$((sent + RECORDS))
}

"$root/tests/tools/fetch-peers" kafka
sent=0
broker_start
"$root/tests/tools/kafka" tool kafka org.apache.kafka.tools.TopicCommand --create --topic "$TOPIC" \
    --bootstrap-server "$bootstrap" --partitions 3 --replication-factor 1 \
    --config "segment.bytes=$SEGMENT_BYTES"
load none
load lz4
broker_kill
broker_start
load zstd
load none
broker_stop
broker_start
load gzip
broker_stop
python3 "$root/tests/tools/dump_check.py" "$work/data" "$TOPIC" --segments-min 24 --records "$sent"
