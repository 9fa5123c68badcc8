#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Two million records over many small segments, read back from the start and from random offsets;
# and every limit that a log can be filled past.
#
# Rolls, retention by size and by time, and a restart lie in between. What was acknowledged is what
# is there, or gone by the stated retention, and then the log start says so. On a small volume of
# its own (ext4 in a file, and tmpfs) the disk is filled: the workload goes on asking, since the
# error can be retried, and it goes on writing once a topic has been deleted, without a restart.
# Mounting wants root. COUNT changes the number of records (fewer make too few segments).
set -euo pipefail
# shellcheck source=tests/tools/broker.sh
. "$(dirname "$0")/../tools/broker.sh"

count=${COUNT:-2000000}
tools=$(dirname "${STRANDLINE:-$root/build/strandline}")/kill
passed=0 failed=0
mounted=
workload_pid=
SIZE_LIMIT=4194304
SEGMENT=1048576
TIME_LIMIT_S=30

result() { # status, what
    if [ "$1" = 0 ]; then
        passed=$((passed + 1))
        echo "ok: $2"
    else
        failed=$((failed + 1))
        echo "FAILED: $2"
    fi
}

expect() { # what, command...
    local what=$1 status=0
    shift
    "$@" || status=1
    result $status "$what"
}

start() {
    broker_start --set "log.segment.bytes=$SEGMENT" --set log.retention.check.interval.ms=500 \
        --set log.initial.task.delay.ms=500 --set log.segment.delete.delay.ms=500
}

workload() { # topic, option...
    local topic=$1
    shift
    "$tools/workload" -p 1 "$@" "$bootstrap" "$work/acks-${topic%%:*}" "$topic"
}

verify() { # topic, option...
    local topic=$1
    shift
    "$tools/verify" "$@" "$bootstrap" "$work/acks-${topic%%:*}" "$topic"
}

log_start() { # topic
    "$tools/topic" offsets "$bootstrap" "$1" 1 | cut -d ' ' -f 2
}

is_empty() { # topic: everything is gone, and both ends say so
    local _ first end
    read -r _ first end < <("$tools/topic" offsets "$bootstrap" "$1" 1)
    [ "$first" = "$end" ] && [ "$end" -gt 0 ]
}

wait_until() { # seconds, command...
    local limit=$((SECONDS + $1))
    shift
    until "$@"; do
        [ $SECONDS -lt $limit ] || return 1
        sleep 0.2
    done
}

stored_bytes() { # topic
    cat "$work/data/$1-0/"*.log | wc -c
}

is_near_size_limit() {
    local bytes
    bytes=$(stored_bytes by-size)
    [ "$bytes" -ge $SIZE_LIMIT ] && [ "$bytes" -le $((SIZE_LIMIT + 2 * SEGMENT)) ]
}

segments() {
    find "$work/data" -path '*/plain-*/*.log' | wc -l
}

many_segments() {
    local half=$((count / 2)) began
    start
    "$tools/topic" create "$bootstrap" plain 3
    "$tools/topic" create "$bootstrap" by-size 1 retention.bytes=$SIZE_LIMIT
    "$tools/topic" create "$bootstrap" by-time 1 retention.ms=$((TIME_LIMIT_S * 1000))
    expect "the first half" workload plain:3:all -n $half -b 2000
    expect "ten times the size limit" workload by-size:1:all -n 500000 -b 6000
    broker_stop
    start
    expect "the second half, after a restart" workload plain:3:all -n $half -b 2000 -f 1
    expect "more than 50 segments" [ "$(segments)" -gt 50 ]
    expect "every record once and in order, from the start and from 1000 offsets" \
        verify plain:3:all -r 1000
    expect "what size retention leaves is its limit" wait_until 20 is_near_size_limit
    expect "its log start says what is gone" [ "$(log_start by-size)" -gt 0 ]
    expect "the rest is as acknowledged" verify by-size:1:all -t -r 50
    began=$SECONDS
    expect "a topic with a limit in time" workload by-time:1:all -n 100000 -b 2000
    [ $((SECONDS - began)) -ge $((TIME_LIMIT_S - 10)) ] ||
        expect "nothing is gone before its time" verify by-time:1:all
    expect "everything is gone after it" wait_until $((TIME_LIMIT_S + 20)) is_empty by-time
    expect "and new records get the offsets behind" workload by-time:1:all -n 1000 -f 1
    expect "they are there" verify by-time:1:all -t
    broker_stop
}

# ---- a full disk ----

unmount() {
    [ -z "$mounted" ] || umount "$mounted"
    mounted=
}

at_exit_here() {
    [ -z "$workload_pid" ] || kill -9 "$workload_pid" 2>/dev/null || true
    [ -z "$broker_pid" ] || { kill -9 "$broker_pid"; wait "$broker_pid" 2>/dev/null; } || true
    broker_pid=
    unmount
    at_exit
}
trap at_exit_here EXIT

mount_volume() { # kind
    rm -rf "${work:?}"/* && mkdir "$work/data"
    case $1 in
    tmpfs) mount -t tmpfs -o size=300m tmpfs "$work/data" ;;
    ext4) truncate -s 300M "$work/image" && mkfs.ext4 -q "$work/image" &&
        mount -o loop "$work/image" "$work/data" && rmdir "$work/data/lost+found" ;;
    esac && mounted=$work/data
}

acks_bytes() {
    stat -c %s "$work/acks-filler" 2>/dev/null || echo 0
}

stands_still() { # no acknowledgement within two seconds, though the workload is alive
    local before
    before=$(acks_bytes)
    sleep 2
    [ "$before" -gt 0 ] && [ "$(acks_bytes)" = "$before" ] && kill -0 "$workload_pid"
}

goes_on_since() { # bytes
    [ "$(acks_bytes)" -gt "$1" ] && kill -0 "$workload_pid"
}

stop_workload() {
    local status=0
    kill -TERM "$workload_pid"
    wait "$workload_pid" || status=1
    workload_pid=
    return $status
}

full_disk() { # kind of file system
    local stood
    if ! mount_volume "$1"; then
        result 1 "$1: no volume could be mounted (this wants root and loop devices)"
        return
    fi
    start
    "$tools/topic" create "$bootstrap" ballast 1
    "$tools/topic" create "$bootstrap" filler 1
    expect "$1: ballast" workload ballast:1:all -n 20000 -b 900000
    # Slow enough that what a deletion frees is not full again before the workload is stopped.
    "$tools/workload" -p 1 -b 400000 -r 3000 -w 300 "$bootstrap" "$work/acks-filler" filler:1:all &
    workload_pid=$!
    expect "$1: a full disk refuses, the client retries" wait_until 60 stands_still
    df -h "$work/data" | tail -n 1
    expect "$1: reading goes on" verify filler:1:all -r 20
    stood=$(acks_bytes)
    expect "$1: so does deleting a topic" "$tools/topic" delete "$bootstrap" ballast
    expect "$1: freed space makes it write again" wait_until 30 goes_on_since "$stood"
    expect "$1: and nothing was given up" stop_workload
    expect "$1: what was acknowledged is there" verify filler:1:all -r 100
    broker_stop
    start
    expect "$1: also after a restart" verify filler:1:all -r 100
    broker_stop
    unmount
}

many_segments
if [ "${BROKER:-strandline}" = strandline ]; then
    full_disk ext4
    full_disk tmpfs
fi
echo "$passed passed, $failed failed"
[ $failed = 0 ]
