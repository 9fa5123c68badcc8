#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What kcat wrote is there after kill -9 and after a clean stop, and only the first has anything to
# recover. A start may be stopped at any moment, also while it recovers.
set -euo pipefail
# shellcheck source=tests/tools/broker.sh
. "$(dirname "$0")/../tools/broker.sh"

RECORDS=5000
passed=0 failed=0

expect() { # what, command...
    local what=$1
    shift
    if "$@"; then
        passed=$((passed + 1))
        echo "ok: $what"
    else
        failed=$((failed + 1))
        echo "FAILED: $what"
    fi
}

write() { # first number, count
    seq "$1" $(($1 + $2 - 1)) | kcat -P -b "$bootstrap" -t restart -p 0 -X acks=all
}

# The numbers that were written, in order, each once.
holds() { # count
    cmp -s <(seq 1 "$1") <(kcat -C -q -e -b "$bootstrap" -t restart -p 0 -o beginning)
}

says() { # words in the ready line
    grep -q "ready.*$1" "$work/out"
}

said_nothing_of_recovery() {
    ! grep -qi recover "$work/out" "$work/err"
}

kill_broker() {
    kill -9 "$broker_pid"
    wait "$broker_pid" 2>/dev/null || true
}

# Ends well, whether it had come so far as to listen to signals or not.
stopped_after() { # seconds
    local status=0 pid
    "${STRANDLINE:-$root/build/strandline}" serve --set "log.dirs=$work/data" \
        --set listeners=PLAINTEXT://127.0.0.1:0 >"$work/out" 2>"$work/err" &
    pid=$!
    sleep "$1"
    kill -TERM $pid
    wait $pid || status=$?
    [ $status = 0 ] || [ $status = $((128 + 15)) ]
}

broker_start
write 1 $RECORDS
expect "written" holds $RECORDS
kill_broker
broker_start
expect "after kill -9 everything is there" holds $RECORDS
expect "and the start says that it recovered" says recovered
write $((RECORDS + 1)) $RECORDS
broker_stop
broker_start
expect "after a clean stop everything is there" holds $((2 * RECORDS))
expect "and the start is a clean one" says 'clean start'
expect "that recovers nothing" said_nothing_of_recovery
write $((2 * RECORDS + 1)) 1
expect "and goes on behind" holds $((2 * RECORDS + 1))
kill_broker
for ms in 02 04 06 08 10 12 14 16 20 25 30 40; do
    expect "a start is stopped after $ms ms" stopped_after 0.0$ms
done
broker_start
expect "and then everything is there" holds $((2 * RECORDS + 1))
broker_stop
echo "$passed passed, $failed failed"
[ $failed = 0 ]
