#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The broker and Apache Kafka get the same requests, every version of every API that both serve, and
# must give the same answers, but for the differences that tests/tools/compare_probes.py names.
set -euo pipefail
# shellcheck disable=SC2119 source=tests/tools/broker.sh
. "$(dirname "$0")/../tools/broker.sh"

"$root/tests/tools/fetch-peers" kafka kafka-python
python=${STRANDLINE_PEERS:-$HOME/.cache/strandline-peers}/kafka-python/bin/python # has crc32c

probe() { # LABEL
    "$python" "$root/tests/tools/capture/probe.py" "$bootstrap" --peer "$1" \
        --out "$work/$1.jsonl" >"$work/$1.ranges" || fail "the probe of $1"
}

broker_start
probe ours
broker_stop
rm -rf "$work/data"
BROKER=kafka
broker_start
probe theirs
broker_stop
"$python" "$root/tests/tools/compare_probes.py" "$work/theirs.jsonl" "$work/ours.jsonl"
