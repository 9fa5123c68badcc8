# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Sourced by checks with three brokers on a real ZooKeeper, which their programs in tests/cluster
# start; has all of broker.sh.
#   cluster_run SCRIPT WHAT [ARG]...   SCRIPT PROGRAM ZOOKEEPER WORKDIR ARG...; if it fails, so does
#                                      the check, with WHAT and the ends of the brokers' logs
# shellcheck source=tests/tools/broker.sh
. "$(dirname "${BASH_SOURCE[0]}")/broker.sh"

zookeeper=$root/tests/tools/zookeeper

stop_all() {
    [ ! -d "$work/zookeeper" ] || "$zookeeper" stop "$work/zookeeper"
    at_exit
}
trap stop_all EXIT

cluster_run() {
    local script=$1 what=$2
    shift 2
    "$root/tests/tools/fetch-peers" kafka-3.9 kafka-python
    mkdir -p "$work/zookeeper"
    "$zookeeper" start "$work/zookeeper" "$(free_port)"
    "${STRANDLINE_PEERS:-$HOME/.cache/strandline-peers}/kafka-python/bin/python" \
        "$root/tests/cluster/$script" "${STRANDLINE:-$root/build/strandline}" \
        "$("$zookeeper" servers "$work/zookeeper")" "$work" "$@" ||
        { tail -n 15 "$work"/b?.log >&2; fail "$what"; }
}
