#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The keeper on real ZooKeeper: the promises that every keeper keeps.
set -euo pipefail
# shellcheck source=tests/tools/broker.sh
. "$(dirname "$0")/../tools/broker.sh"

tool=$root/tests/tools/zookeeper
tests=${KEEPER_TESTS:-$(dirname "${STRANDLINE:-$root/build/strandline}")/test/keeper}
one=$work/one

stop_all() {
    [ ! -d "$one" ] || "$tool" stop "$one"
    at_exit
}
trap stop_all EXIT

run() { # PROGRAM ARG...: its output only when it fails
    local name=$1
    shift
    "$tests/$name" "$@" >"$work/$name.log" 2>&1 ||
        { grep -v ' OK \]\| RUN ' "$work/$name.log" >&2; fail "$name $*"; }
}

[ -x "$tests/suite_test" ] || fail "there is no $tests/suite_test; make test-keeper builds it"
mkdir -p "$one"
"$tool" start "$one" "$(free_port)" || fail "no ZooKeeper"
servers=$("$tool" servers "$one")
run suite_test "$servers"
echo "the keepers' suite passes on ZooKeeper at $servers"
