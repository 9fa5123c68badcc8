#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# kill -9 in a loop under load: no acknowledged record is lost, changed, moved or doubled.
#
# Producers write without a pause to topics of every kind (acks=all and acks=1, synced and not: a
# kill leaves the page cache alone) while the broker is killed at seeded moments, also during its
# own start, and started again on the same directory and port. Segments are small, so that kills
# meet rolls. Every ten rounds, and at the end, everything is read back and compared (tests/kill).
# A build that acknowledges before the write has to fail the same check.
# ROUNDS and SEED change the run; BROKER=kafka runs the rounds against Apache Kafka.
set -euo pipefail
# shellcheck source=tests/tools/broker.sh
. "$(dirname "$0")/../tools/broker.sh"

rounds=${ROUNDS:-100}
planted_rounds=20
rate=400
planted_rate=20000 # the lane is never idle, so that a kill meets what waits for it
program=${STRANDLINE:-$root/build/strandline}
tools=$(dirname "$program")/kill
topics="kill-all:3:all kill-page-all:2:all kill-one:2:one kill-page-one:1:one"
passed=0 failed=0
workload_pid=
RANDOM=${SEED:-40}

start() {
    if [ "${BROKER:-strandline}" = kafka ] && [ -e "$work/peer" ]; then
        "$root/tests/tools/kafka" again "$work"
        broker_pid=$(cat "$work/pid")
        return
    fi
    if [ "${BROKER:-strandline}" = kafka ]; then
        broker_start --set log.segment.bytes=1048576
        return
    fi
    broker_start --set "listeners=PLAINTEXT://127.0.0.1:$port" --set log.segment.bytes=1048576
}

kill_broker() {
    kill -9 "$broker_pid"
    wait "$broker_pid" 2>/dev/null || true
    while kill -0 "$broker_pid" 2>/dev/null; do # Kafka is no child of this shell.
        sleep 0.05
    done
    broker_pid=
}

pause() { # at most this many milliseconds
    sleep "$(printf '%d.%03d' $((RANDOM % $1 / 1000)) $((RANDOM % $1 % 1000)))"
}

# A start that is killed before it is done, a few milliseconds in.
start_in_vain() {
    [ "${BROKER:-strandline}" = strandline ] || return 0
    "$program" serve --set "log.dirs=$work/data" --set "listeners=PLAINTEXT://127.0.0.1:$port" \
        --set log.segment.bytes=1048576 >/dev/null 2>&1 &
    broker_pid=$!
    pause 20
    kill_broker
}

create_topics() {
    local topic name partitions unsynced
    for topic in $topics; do
        IFS=: read -r name partitions _ <<<"$topic"
        unsynced=
        case "${BROKER:-strandline} $topic" in "strandline kill-page"*) unsynced=flush.on.ack=false ;; esac
        "$tools/topic" create "$bootstrap" "$name" "$partitions" $unsynced || fail "no topic $name"
    done
}

verify() {
    # shellcheck disable=SC2086
    "$tools/verify" "$@" "$bootstrap" "$work/acks" $topics
}

# Kills and starts, with load all the time. Fails as soon as something is wrong.
run_rounds() { # count
    local round in_vain=0 began=$SECONDS
    # shellcheck disable=SC2086
    "$tools/workload" -r "$rate" -b 400000 -s "${SEED:-40}" "$bootstrap" "$work/acks" $topics &
    workload_pid=$!
    for round in $(seq "$1"); do
        pause 1500
        kill_broker
        while [ $((RANDOM % 4)) = 0 ]; do
            start_in_vain
            in_vain=$((in_vain + 1))
        done
        start
        kill -0 $workload_pid || return 1
        [ $((round % 10)) != 0 ] && [ "$round" != "$1" ] && continue
        verify || return 1
        echo "round $round: $((round + in_vain)) kills, $((SECONDS - began)) s"
    done
    kill -TERM $workload_pid
    wait $workload_pid || return 1
}

result() { # status, what
    if [ "$1" = 0 ]; then
        passed=$((passed + 1))
        echo "ok: $2"
    else
        failed=$((failed + 1))
        echo "FAILED: $2"
    fi
}

# The broker of $program, from an empty directory.
scenario() { # count of rounds
    port=$(free_port)
    rm -rf "${work:?}"/*
    start
    create_topics
    run_rounds "$1"
}

end_scenario() {
    kill -9 $workload_pid 2>/dev/null || true
    [ -z "$broker_pid" ] || kill_broker
}

survives() {
    local status=0
    scenario "$rounds" && verify || status=1
    result $status "$rounds rounds of kill -9 under load"
    [ $status = 0 ] || { tail -n 20 "$work/err" >&2; end_scenario; return; }
    broker_stop
    start
    verify -r 200 || status=1
    result $status "everything is there after a clean stop"
    [ "${BROKER:-strandline}" = kafka ] || grep -q 'clean start' "$work/out" || status=1
    result $status "a clean stop leaves nothing to recover"
    broker_stop
}

finds_the_planted_mistake() {
    local planted found=0
    planted=$(dirname "$program")/planted
    make -s -C "$root" B="$planted" PLANT=ACK_BEFORE_WRITE "$planted/strandline" >/dev/null ||
        fail "the planted build does not compile"
    program=$planted/strandline
    STRANDLINE=$program
    rate=$planted_rate
    scenario "$planted_rounds" >"$planted.log" 2>&1 || true
    verify >>"$planted.log" 2>&1 || true
    end_scenario
    grep -m 5 -E '^(lost|gap|moved)' "$planted.log" || tail -n 5 "$planted.log"
    grep -q '^lost' "$planted.log" || found=1
    result $found "a build that acknowledges before the write is found"
}

survives
[ "${BROKER:-strandline}" = kafka ] || finds_the_planted_mistake
echo "$passed passed, $failed failed"
[ $failed = 0 ]
