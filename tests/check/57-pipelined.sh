#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What is sent in one breath on a connection. A question for a group's offset right behind a commit
# knows of the commit, and metadata asked for behind a join is as of its end (BROKER=kafka runs the
# same against Apache Kafka). A batch behind one that was refused for now is refused for now.
set -euo pipefail
# shellcheck source=tests/tools/broker.sh
. "$(dirname "$0")/../tools/broker.sh"

for shards in 1 3; do
    broker_start --set "num.shards=$shards" --set auto.create.topics.enable=false
    python3 "$root/tests/clients/groups/pipelined.py" "$bootstrap"
    python3 "$root/tests/clients/groups/turn.py" "$bootstrap"
    [ "${BROKER:-strandline}" = kafka ] ||
        python3 "$root/tests/clients/produce/refused.py" "$bootstrap"
    broker_stop
    [ "${BROKER:-strandline}" = strandline ] || break
    rm -rf "$work/data"
done
