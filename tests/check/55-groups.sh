#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Consumer groups: clients of six kinds join, share, are killed, take over, commit and go on behind
# a kill -9 of the broker; Kafka's own tools administer the groups and read our records of them.
# BROKER=kafka runs the same against Apache Kafka.
set -euo pipefail
# shellcheck source=tests/tools/broker.sh
. "$(dirname "$0")/../tools/broker.sh"

KEYS=(--set num.partitions=3 --set group.initial.rebalance.delay.ms=0)

tool() { "$root/tests/tools/kafka" tool kafka "$@"; }
group_tool() {
    tool org.apache.kafka.tools.consumer.group.ConsumerGroupCommand --bootstrap-server \
        "$bootstrap" "$@" 2>"$work/tool.err"
}

expect() { # WHAT TEXT PATTERN
    grep -qE "$3" <<<"$2" || fail "$1: no '$3' in: $2"
}

# Every partition of a group's topic is read to its end.
administer() {
    local group=groups-java out
    expect list "$(group_tool --list)" "^$group\$"
    expect state "$(group_tool --describe --group "$group" --state)" "Empty +0"
    out=$(group_tool --describe --group "$group" --offsets)
    [ "$(grep -cE "^$group +$group +[0-9]+ +([0-9]+) +\\1 +0 " <<<"$out")" = 3 ] ||
        fail "offsets: $out"
    out=$(group_tool --reset-offsets --group "$group" --topic "$group:1" --to-offset 5 --execute)
    expect reset "$out" "$group +$group +1 +5"
    expect lag "$(group_tool --describe --group "$group" --offsets)" "^$group +$group +1 +5 "
    out=$(group_tool --delete-offsets --group "$group" --topic "$group:2")
    expect delete-offsets "$out" "Successful"
    out=$(group_tool --delete --group "$group")
    expect delete "$out" "successful"
    ! group_tool --list | grep -qx "$group" || fail "the deleted group is listed"
}

# Kafka's dump tool reads every record that the coordinator has written.
dump() {
    local log
    for log in "$work"/data/__consumer_offsets-*/*.log; do
        [ -s "$log" ] || continue
        tool org.apache.kafka.tools.DumpLogSegments --offsets-decoder --files "$log"
    done >"$work/dump" 2>"$work/dump.err" || { tail -n 3 "$work/dump.err" >&2; fail dump; }
    grep -q 'key: {"type":"1","data":{"group":"groups-kcat","topic":"groups-kcat"' "$work/dump" ||
        fail "no offset in the dump"
    grep -q 'key: {"type":"2","data":{"group":"groups-kcat"}}' "$work/dump" ||
        fail "no group in the dump"
    ! grep -qiE 'could not|corrupt|invalid|unknown' "$work/dump" || fail "the dump complains"
    echo "$(grep -c 'key: {"type"' "$work/dump") records of groups are read by Kafka's dump tool"
}

"$root/tests/tools/fetch-peers" kcat java kafka franz-go kafka-python kafka-python-old kafkajs
cd "$work"
broker_start "${KEYS[@]}"
python3 "$root/tests/clients/groups/first_record.py" "$bootstrap"
python3 "$root/tests/clients/groups/groups.py" work "$bootstrap"
broker_kill
broker_start "${KEYS[@]}"
python3 "$root/tests/clients/groups/groups.py" again "$bootstrap"
administer
broker_stop
dump
