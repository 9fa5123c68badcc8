# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2120 # sourced
# Sourced by the checks: starts the broker under test and stops it at exit.
#
#   broker_start [--ephemeral] [--set key=value]...   start it; sets $bootstrap and $broker_pid
#   broker_stop       stop it cleanly; fails if it ends with an error
#   broker_kill       kill -9; broker_start may start it again with its data
#
# $STRANDLINE names the program (build/strandline). With BROKER=kafka real Apache Kafka is started
# instead, to tell a fault of a test from one of ours; keys then go into its server.properties. The
# data lies in $work/data (unless ephemeral), and $work is removed at exit unless KEEP is set.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/strandline-check.XXXXXX")
broker_pid=
READY_SECONDS=20
STOP_SECONDS=30

# Kafka takes the port and the next one. They lie below those that the kernel gives to clients, so
# that none is taken between the look and the use.
free_port() {
    python3 - <<-'X'
	import os, socket
	for port in range(20000 + os.getpid() % 5000 * 2, 32000, 2):
	    try:
	        for one in (port, port + 1):
	            with socket.socket() as s:
	                s.bind(("127.0.0.1", one))
	    except OSError:
	        continue
	    print(port)
	    break
	X
}

fail() {
    echo "FAILED ${0##*/}: $*" >&2
    exit 1
}

start_strandline() {
    local program=${STRANDLINE:-$root/build/strandline}
    local place=(--set "log.dirs=$work/data")
    if [ "${1:-}" = --ephemeral ]; then
        place=(--ephemeral)
        shift
    fi
    [ -x "$program" ] || fail "there is no $program; build it or set STRANDLINE"
    : >"$work/out" # Or the loop below may find what the broker before has said.
    "$program" serve "${place[@]}" --set "listeners=PLAINTEXT://127.0.0.1:0" "$@" \
        >"$work/out" 2>"$work/err" &
    broker_pid=$!
    for _ in $(seq $((READY_SECONDS * 20))); do
        bootstrap=$(grep ready "$work/out" | grep -oE '127\.0\.0\.1:[0-9]+' | head -n 1) && return
        kill -0 "$broker_pid" 2>/dev/null || { cat "$work/err" >&2; fail "it ended at start"; }
        sleep 0.05
    done
    fail "not ready within $READY_SECONDS s"
}

start_kafka() {
    local keys=() port
    [ "${1:-}" != --ephemeral ] || shift
    while [ $# -gt 0 ]; do
        keys+=("$2")
        shift 2
    done
    if [ -e "$work/server.properties" ]; then
        "$root/tests/tools/kafka" again "$work"
        broker_pid=$(cat "$work/pid")
        return
    fi
    port=$(free_port)
    "$root/tests/tools/kafka" start kafka "$work" "$port" "${keys[@]}" || fail "no Kafka"
    bootstrap=127.0.0.1:$port
    broker_pid=$(cat "$work/pid")
}

broker_start() {
    if [ "${BROKER:-strandline}" = kafka ]; then
        start_kafka "$@"
    else
        start_strandline "$@"
    fi
}

broker_stop() {
    local pid=$broker_pid status=0
    broker_pid=
    if [ "${BROKER:-strandline}" = kafka ]; then
        "$root/tests/tools/kafka" stop "$work"
        return
    fi
    kill -TERM "$pid"
    timeout "$STOP_SECONDS" tail --pid="$pid" -f /dev/null || fail "no stop in $STOP_SECONDS s"
    wait "$pid" || status=$?
    [ "$status" = 0 ] || { tail -n 20 "$work/err" >&2; fail "the broker ended with $status"; }
}

broker_kill() {
    kill -9 "$broker_pid"
    wait "$broker_pid" 2>/dev/null || true
    timeout "$STOP_SECONDS" tail --pid="$broker_pid" -f /dev/null
    broker_pid=
}

at_exit() {
    [ -z "$broker_pid" ] || kill -9 "$broker_pid" 2>/dev/null || true
    if [ -n "${KEEP:-}" ]; then
        echo "kept $work" >&2
    else
        rm -rf "$work"
    fi
}
trap at_exit EXIT
