#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# One data directory changes hands between Apache Kafka and us, several times: after clean stops and
# after kill -9, with two log directories, several segments, compaction, transactions (one left
# open), a cut log start, deletions under way. Each time everything that a reader can know must be
# the same, and one idempotent producer writes through all of it. Then what is adopted is kept whole
# until its configuration is imported or altered.
set -euo pipefail
# shellcheck source=tests/tools/broker.sh
. "$(dirname "$0")/../tools/broker.sh"

"$root/tests/tools/fetch-peers" kafka kafka-3.9 librdkafka-new
python=${STRANDLINE_PEERS:-$HOME/.cache/strandline-peers}/librdkafka-new/bin/python
export HEAP=${HEAP:-256m}
passed=0
failed=0
flow_pid=
kafka_dir=

end_all() {
    [ -z "$flow_pid" ] || kill "$flow_pid" 2>/dev/null || true
    [ -z "$kafka_dir" ] || [ ! -e "$kafka_dir/pid" ] || kill -9 "$(cat "$kafka_dir/pid")" 2>/dev/null || true
    at_exit
}
trap end_all EXIT

check() { # WHAT COMMAND...
    local what=$1
    shift
    if "$@" >"$work/check.log" 2>&1; then
        passed=$((passed + 1))
        echo "ok   $peer: $what"
    else
        failed=$((failed + 1))
        echo "FAIL $peer: $what"
        cut -c1-400 "$work/check.log" | tail -n 12 | sed 's/^/     /'
    fi
}

moving() { # COMMAND ARG...: asked of whichever broker has the directory
    local command=$1
    shift
    "$python" "$root/tests/tools/moving.py" "$command" "127.0.0.1:$port" "$@"
}

same() { # OLD NEW TOPIC...
    "$python" "$root/tests/tools/moving.py" same "$work/$peer.$1" "$work/$peer.$2" "${@:3}"
}

snap() {
    moving snap "$work/$peer.$1"
}

goes_on() {
    check "the producer goes on" "$python" "$root/tests/tools/moving.py" goes "$dir/flow"
}

ours() { # OPTION...: we take the directories over
    broker_start --set "log.dirs=$dir/data,$dir/data2" \
        --set "listeners=PLAINTEXT://127.0.0.1:$port" --set log.initial.task.delay.ms=200 \
        --set log.retention.check.interval.ms=500 "$@"
}

kafka() { # start, again: Kafka takes them over, and never looks for old segments
    kafka_dir=$dir
    if [ "$1" = start ]; then
        "$root/tests/tools/kafka" start "$peer" "$dir" "$port" "log.dirs=$dir/data,$dir/data2" \
            log.cleaner.backoff.ms=200 log.initial.task.delay.ms=36000000 \
            log.retention.check.interval.ms=36000000
    else
        "$root/tests/tools/kafka" again "$dir"
    fi
}

kafka_stop() {
    "$root/tests/tools/kafka" stop "$dir"
}

kafka_kill() {
    local pid
    pid=$(cat "$dir/pid")
    kill -9 "$pid"
    timeout "$STOP_SECONDS" tail --pid="$pid" -f /dev/null
    rm "$dir/pid"
}

# What Kafka's own tools say of its topics; those that it compacts are left out, so that they stay
# whole.
describe() {
    local class=org.apache.kafka.tools.ConfigCommand
    [ "$peer" = kafka ] || class=kafka.admin.ConfigCommand
    "$root/tests/tools/kafka" tool "$peer" "$class" --bootstrap-server "127.0.0.1:$port" \
        --describe --all --entity-type topics |
        awk '/^[^ ]/ { skips = / topic (compacted|__.*) are:/ } !skips' >"$dir/configs.txt"
    "$root/tests/tools/kafka" tool "$peer" org.apache.kafka.tools.TopicCommand \
        --bootstrap-server "127.0.0.1:$port" --describe |
        grep -v '^Topic: \(compacted\|__\)' >"$dir/topics.txt"
}

# Kafka fills its directories; we take them over, die, go on, stop.
to_us_and_back() {
    kafka start
    check "topics of every kind are made" moving fill
    moving flow "$dir/flow" >"$dir/flow.log" 2>&1 &
    flow_pid=$!
    goes_on
    check "Kafka's own state is read" snap 1
    kafka_stop
    mkdir "$dir/data2/lost+found" # Kafka refuses it; a file system's root has it.
    ours
    check "a start on what Kafka left says that it adopts" grep -q 'event=topics.adopted count=10' "$work/err"
    snap 2 >/dev/null
    check "we know what Kafka knew" same 1 2
    check "deletions that were under way are finished" test -z "$(ls -d "$dir"/data*/*-delete 2>/dev/null)"
    goes_on
    check "groups have their offsets" moving group
    check "topics are written" moving write kept
    check "new producers are no old ones" moving write txns
    snap 3 >/dev/null
    broker_kill
    ours
    snap 4 >/dev/null
    check "our kill -9 changes nothing" same 3 4
    goes_on
    broker_stop
    rmdir "$dir/data2/lost+found"
    kafka again
    snap 5 >/dev/null
    check "Kafka knows what we knew, after our clean stop" same 4 5
}

# Kafka goes on, is killed under load; we, killed too; Kafka again.
killed_both_ways() {
    goes_on
    check "groups have their offsets at Kafka's" moving group
    check "topics are written at Kafka's" moving write kept
    check "new producers at Kafka's are no old ones" moving write txns
    snap 6 >/dev/null
    check "Kafka makes a topic meanwhile" moving write meanwhile --new
    kafka_kill
    ours
    snap 7 >/dev/null
    check "we know what Kafka knew when it was killed" same 6 7
    check "a topic that we do not know is set aside" test -n "$(ls -d "$dir"/data*/meanwhile-0.*-stray)"
    check "and said so" grep -q 'event=partition.stray.*topic=meanwhile.*--import' "$work/err"
    goes_on
    check "topics are written again" moving write trimmed
    snap 8 >/dev/null
    broker_kill
    kafka again
    snap 9 >/dev/null
    # A KRaft broker that was killed comes back in the epoch that it had, and forgets later ones.
    check "Kafka knows what we knew when we were killed" same 8 9 meanwhile --but-epochs
    goes_on
}

# Retention stays off until somebody says what it is.
imported() {
    check "retention is altered at Kafka's" moving alter limited retention.ms=2592000000
    check "a topic is filled at Kafka's" moving write meanwhile
    snap 10 >/dev/null
    check "Kafka's tools describe the topics" describe
    touch "$dir/flow.stop"
    check "the producer has written through it all" wait "$flow_pid"
    flow_pid=
    kafka_stop
    check "a file that says nothing is refused" refused
    ours --import "$dir/$1"
    check "what Kafka deletes is deleted" moving start limited
    snap 11 >/dev/null
    check "all else is kept, also what Kafka made meanwhile" same 10 11 limited
    check "what is kept whole is said" grep -q \
        'event=topics.adopted count=3 topics="__consumer_offsets __transaction_state compacted"' "$work/err"
    check "an altered retention holds" altered
    check "our own tool describes the topics" describe_ours
    check "each record of the producer is there once" moving flown "$dir/flow"
    broker_stop
}

describe_ours() {
    local topic
    for topic in kept aged limited; do
        cli configs describe --topic "$topic" --json
    done >"$dir/configs.json"
}

cli() {
    "${STRANDLINE:-$root/build/strandline}" "$@" --bootstrap-server "127.0.0.1:$port"
}

altered() {
    moving alter aged retention.ms=86400000
    moving start aged
}

refused() {
    ! "${STRANDLINE:-$root/build/strandline}" serve --import /etc/hostname 2>"$work/refused" &&
        grep -q 'says nothing of any topic' "$work/refused"
}

# As ZooKeeper's brokers left them: version 0 of meta.properties, no ids of topics.
as_of_old() {
    local d
    rm "$dir"/data*/strandline-keeper.db* "$dir"/data*/kept-*/partition.metadata
    for d in "$dir"/data*; do
        sed -i '/^version\|^directory/d; s/^node.id/broker.id/' "$d/meta.properties"
    done
    ours --import "$dir/configs.json"
    snap 12 >/dev/null
    check "what our own tool described is read" grep -qx 'retention.ms=86400000' <(cli configs describe --topic aged)
    check "a directory of ZooKeeper's time is read" same 11 12 limited aged
    check "it stays one" test "$(grep -c '^version=0' "$dir"/data*/meta.properties | grep -c ':1')" = 2
    check "ids of topics are written" test -s "$dir/data2/kept-0/partition.metadata" -o -s "$dir/data/kept-0/partition.metadata"
    broker_stop
}

round() { # PEER FILE
    peer=$1
    dir=$work/$peer
    port=$(free_port)
    to_us_and_back
    killed_both_ways
    imported "$2"
    as_of_old
}

round kafka configs.txt
round kafka-3.9 topics.txt
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
