#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The keeper on real ZooKeeper: the promises that every keeper keeps, connections that break at any
# point, sessions that end; and an ensemble of three whose servers are killed in turn while a
# counter in it goes up, which must count every step once.
set -euo pipefail
# shellcheck source=tests/tools/broker.sh
. "$(dirname "$0")/../tools/broker.sh"

tool=$root/tests/tools/zookeeper
tests=${KEEPER_TESTS:-$(dirname "${STRANDLINE:-$root/build/strandline}")/test/keeper}
one=$work/one three=$work/three

stop_all() {
    local dir
    for dir in "$one" "$three"; do
        [ ! -d "$dir" ] || "$tool" stop "$dir"
    done
    at_exit
}
trap stop_all EXIT

run() { # PROGRAM ARG...: its output only when it fails
    local name=$1
    shift
    "$tests/$name" "$@" >"$work/$name.log" 2>&1 ||
        { grep -v ' OK \]\| RUN ' "$work/$name.log" >&2; fail "$name $*"; }
}

at_least() { # N: waits until the counter is there
    for _ in $(seq 1200); do
        [ "$(tail -n 1 "$work/count")" -ge "$1" ] 2>/dev/null && return
        kill -0 "$counter" 2>/dev/null || { tail -n 5 "$work/count.err" >&2; fail "no counter"; }
        sleep 0.05
    done
    fail "the counter stands at $(tail -n 1 "$work/count")"
}

[ -x "$tests/zookeeper_test" ] || fail "there is no $tests/zookeeper_test; make test-keeper builds it"
mkdir -p "$one" "$three"
"$tool" start "$one" "$(free_port)" || fail "no ZooKeeper"
servers=$("$tool" servers "$one")
run suite_test "$servers"
run registration_test "$servers"
run zookeeper_test "$servers"
"$tool" stop "$one"
: >"$work/count"
echo "the suite of all keepers, registration and the tests of lost connections pass"

"$tool" start "$three" "$(free_port)" 3 || fail "no ensemble"
"$tests/zookeeper_test" "$("$tool" servers "$three")" count >"$work/count" 2>"$work/count.err" &
counter=$!
at_least 100
for n in 1 2 3; do
    "$tool" kill "$three" "$n"
    at_least $(($(tail -n 1 "$work/count") + 500)) # without it
    "$tool" again "$three" "$n"
    at_least $(($(tail -n 1 "$work/count") + 200))
done
kill -TERM "$counter"
wait "$counter" || { tail -n 5 "$work/count" "$work/count.err" >&2; fail "the session has ended"; }
tail -n 1 "$work/count"
