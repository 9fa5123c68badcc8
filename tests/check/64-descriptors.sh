#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A limit of open files: partitions and connections beyond it are refused with the reason, what is
# there goes on, and a start that cannot open its logs says so.
set -euo pipefail
# shellcheck source=tests/tools/broker.sh
. "$(dirname "$0")/../tools/broker.sh"

LIMIT=600
program=${STRANDLINE:-$root/build/strandline}
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

create() { # topic, partitions
    "$program" topics create "$1" --partitions "$2" --bootstrap-server "$bootstrap" \
        >"$work/create" 2>&1
}

refused() { # words of the reason, topic, partitions
    local words=$1
    shift
    ! create "$@" && grep -q "$words" "$work/create"
}

write() { # records
    seq "$1" | kcat -P -b "$bootstrap" -t small -p 0 -X acks=all
}

holds() { # records
    cmp -s <(seq "$1") <(kcat -C -q -e -b "$bootstrap" -t small -p 0 -o beginning)
}

open_files() {
    find "/proc/$broker_pid/fd" -mindepth 1 2>/dev/null | wc -l
}

# More connections than there are descriptors for; the broker closes those that it cannot keep. The
# others stay until there is a byte on descriptor 3.
crowd() {
    python3 - "${bootstrap##*:}" $((LIMIT - 50)) <<'END'
import os, select, socket, sys, time
conns = [socket.create_connection(("127.0.0.1", int(sys.argv[1]))) for _ in range(int(sys.argv[2]))]
closed = set()
deadline = time.monotonic() + 10
while time.monotonic() < deadline and not closed:
    time.sleep(0.1)  # Until the broker has taken the first of those that it refuses.
    closed = set(select.select(conns, [], [], 0)[0])
print("ready", flush=True)
os.read(3, 1)  # Standard input is this program.
sys.exit(0 if 0 < len(closed) < len(conns) else 1)
END
}

ulimit -n $LIMIT
broker_start
expect "as many partitions as there is room for" create small 40
write 1000
expect "more are refused" refused 'open files' large 200
expect "and nothing of them was made" test ! -e "$work/data/large-0"

mkfifo "$work/leave"
crowd 3<"$work/leave" >"$work/crowd" 2>"$work/crowd.err" &
crowd=$!
exec 9>"$work/leave"
for _ in $(seq 200); do grep -q ready "$work/crowd" 2>/dev/null && break; sleep 0.1; done
expect "a crowd leaves descriptors for files" test "$(open_files)" -le $((LIMIT * 7 / 8))
echo >&9
expect "some of it was refused, not all" wait $crowd
exec 9>&-
expect "the log says why" grep -q 'connection.refused.*open files' "$work/err"
expect "and what was written is there" holds 1000
expect "no log directory has failed" test ! "$(grep -c 'io.failed\|dir.failed' "$work/err")" -gt 0
broker_stop

small_start() {
    (ulimit -n 160; timeout 20 "$program" serve --set "log.dirs=$work/data" \
        --set listeners=PLAINTEXT://127.0.0.1:0) >"$work/out" 2>"$work/refused"
}
expect "a start without room for its logs is refused" eval '! small_start'
expect "with the reason" grep -q '40 partitions.*open files.*160' "$work/refused"
broker_start
expect "with room everything is there" holds 1000
broker_stop
echo "$passed passed, $failed failed"
[ $failed = 0 ]
