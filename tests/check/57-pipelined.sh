#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A question for a group's offset right behind a commit on the same connection knows of the commit.
# BROKER=kafka runs the same against Apache Kafka.
set -euo pipefail
# shellcheck source=tests/tools/broker.sh
. "$(dirname "$0")/../tools/broker.sh"

for shards in 1 3; do
    broker_start --set "num.shards=$shards"
    python3 "$root/tests/clients/groups/pipelined.py" "$bootstrap"
    broker_stop
    [ "${BROKER:-strandline}" = strandline ] || break
    rm -rf "$work/data"
done
