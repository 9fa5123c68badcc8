#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Hostile clients: 10,000 connections, half frames, huge counts and lengths, peers that never read
# or send a byte a second. The broker stays within its memory, serves others within a second, and
# leaks nothing. Afterwards it serves and stops as if nothing had been.
set -euo pipefail
# shellcheck source=tests/tools/broker.sh
. "$(dirname "$0")/../tools/broker.sh"

BUDGET_BYTES=134217728 # for the frames and responses of all connections
RSS_MIB=320          # twice the budget, since growing frames are copied, and 10,000 connections

ulimit -n "$(ulimit -Hn)"
[ "$(ulimit -n)" -ge 10500 ] || fail "10,000 connections want a limit of 10,500 open files (ulimit -n)"
# A request that is bent may ask for a topic by chance; its files would look like a leak.
broker_start --set "queued.max.request.bytes=$BUDGET_BYTES" --set auto.create.topics.enable=false
status=0
python3 "$root/tests/hostile/hostile.py" "$bootstrap" "$broker_pid" "$RSS_MIB" "$@" || status=1
broker_stop
exit $status
