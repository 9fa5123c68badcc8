#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Apache Kafka's producer writes the same few keys over and over, compressed and not, with deletions
# among them; the broker compacts beside that. Of each key the last record is there, at the offset
# that it was given, also after a kill -9 in the midst of it; every offset can be fetched from; the
# log is as small as it should be; and Kafka's own dump tool finds nothing wrong. A group's offsets
# outlive the compaction of their topic. BROKER=kafka runs the same on Kafka.
set -euo pipefail
# shellcheck disable=SC2119 source=tests/tools/broker.sh
. "$(dirname "$0")/../tools/broker.sh"

TOPIC=compacted
KEYS=400
RECORDS=30000 # of each load
SEGMENT_BYTES=1048576 # the least that Kafka takes
WAIT_SECONDS=60
program=${STRANDLINE:-$root/build/strandline}

start() {
    broker_start --set log.cleaner.backoff.ms=200 --set log.segment.delete.delay.ms=100 \
        --set log.retention.check.interval.ms=500 "$@"
}

# Lines "key TAB value"; each tenth key is deleted at the end of a load.
records() { # LOAD
    python3 - "$1" "$KEYS" "$RECORDS" <<-'X'
	import random, sys
	load, keys, count = map(int, sys.argv[1:])
	rng = random.Random(load)
	for i in range(count):
	    key = rng.randrange(keys)
	    gone = i > count * 0.9 and key % 10 == load
	    value = "NULL" if gone else f"{load}-{i}-" + "v" * rng.randrange(100, 300)
	    print(f"key-{key}\t{value}")
	X
}

load() { # LOAD CODEC
    records "$1" >"$work/load"
    "$root/tests/tools/kafka" tool kafka org.apache.kafka.tools.ConsoleProducer --topic "$TOPIC" \
        --bootstrap-server "$bootstrap" --compression-codec "$2" \
        --reader-property parse.key=true --reader-property null.marker=NULL \
        --batch-size 16384 --timeout 20 --request-required-acks all \
        <"$work/load" >"$work/load.log" 2>&1 || { cat "$work/load.log" >&2; fail load; }
    cat "$work/load" >>"$work/written"
}

stored_bytes() {
    cat "$work/data/$TOPIC-0/"*.log | wc -c
}

is_small() {
    [ "$(stored_bytes)" -le "$1" ]
}

wait_until() { # command...
    local limit=$((SECONDS + WAIT_SECONDS))
    until "$@"; do
        [ $SECONDS -lt $limit ] || return 1
        sleep 0.2
    done
}

# Compares what a reader gets with what was written: the last of each key, at its offset.
verify() {
    "$program" consume "$TOPIC" --bootstrap-server "$bootstrap" --offset earliest --exit-at-end \
        --json >"$work/read"
    python3 - "$work/written" "$work/read" <<-'X'
	import json, sys
	last = {}
	for offset, line in enumerate(open(sys.argv[1])):
	    key, value = line.rstrip("\n").split("\t")
	    last[key] = offset, None if value == "NULL" else value
	total, seen, before = offset + 1, {}, -1
	written = [line.rstrip("\n").split("\t") for line in open(sys.argv[1])]
	for line in open(sys.argv[2]):
	    r = json.loads(line)
	    key, value = written[r["offset"]]
	    assert r["offset"] > before, f"offset {r['offset']} after {before}"
	    assert (r["key"], r["value"]) == (key, None if value == "NULL" else value), r
	    before, seen[key] = r["offset"], (r["offset"], r["value"])
	for key, (offset, value) in last.items():
	    if value is None and key not in seen:
	        continue
	    assert seen.get(key) == (offset, value), (key, offset, seen.get(key))
	print(f"{len(last)} keys as they should be")
	X
}

# A consumer at any offset goes on to the next record there is.
verify_progress() {
    local offset got
    for offset in 0 1 17 $((RECORDS / 2)) $((RECORDS - 1)) "$RECORDS" $((2 * RECORDS - 2)); do
        got=$("$program" consume "$TOPIC" --bootstrap-server "$bootstrap" --offset "$offset" \
            --partition 0 --count 1 --print offset --timeout-ms 10000 | cut -f 1)
        [ "${got:--1}" -ge "$offset" ] || fail "a fetch at $offset gave ${got:-nothing}"
    done
}

groups() { # option...
    "$root/tests/tools/kafka" tool kafka org.apache.kafka.tools.consumer.group.ConsumerGroupCommand \
        --bootstrap-server "$bootstrap" --group compacted-group "$@" 2>>"$work/groups.err"
}

group_is_cleaned() {
    grep -q '^__consumer_offsets 0 [1-9]' "$work/data/cleaner-offset-checkpoint"
}

"$root/tests/tools/fetch-peers" kafka
: >"$work/written"
start
"$root/tests/tools/kafka" tool kafka org.apache.kafka.tools.TopicCommand --create --topic "$TOPIC" \
    --bootstrap-server "$bootstrap" --partitions 1 --replication-factor 1 \
    --config cleanup.policy=compact --config "segment.bytes=$SEGMENT_BYTES" \
    --config min.cleanable.dirty.ratio=0.01 --config delete.retention.ms=1000
load 1 none
wait_until is_small $((3 * SEGMENT_BYTES)) || fail "not compacted: $(stored_bytes) bytes"
verify
broker_kill
start
verify
load 2 lz4
broker_kill
start
load 3 none
wait_until is_small $((3 * SEGMENT_BYTES)) || fail "not compacted: $(stored_bytes) bytes"
verify
verify_progress
broker_stop
python3 "$root/tests/tools/dump_check.py" "$work/data" "$TOPIC" --compacted
grep -q "^$TOPIC 0 [1-9]" "$work/data/cleaner-offset-checkpoint" || fail "no cleaner checkpoint"
echo "$(stored_bytes) bytes are left of $(wc -c <"$work/written")"

start --set log.roll.ms=10 --set log.cleaner.min.cleanable.ratio=0.01 \
    --set offsets.topic.num.partitions=1
for offset in 11 12 13 14 15; do
    groups --topic "$TOPIC" --reset-offsets --to-offset "$offset" --execute >/dev/null
done
wait_until group_is_cleaned || fail "the groups' topic is not compacted"
broker_kill
start
groups --describe | grep -E "^compacted-group +$TOPIC +0 +15 " || fail "the group's offset is gone"
broker_stop
python3 "$root/tests/tools/dump_check.py" "$work/data" __consumer_offsets --compacted
