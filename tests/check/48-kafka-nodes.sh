#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a real Apache Kafka 3.9 keeps in a real ZooKeeper is understood and would be written by us byte
# for byte (configurations: but for the order of their keys). With GOLDEN=1 the nodes become
# tests/golden/znodes/kafka-3.9.txt, which `make test` compares.
set -euo pipefail
# shellcheck source=tests/tools/broker.sh
. "$(dirname "$0")/../tools/broker.sh"

program=${STRANDLINE:-$root/build/strandline}
tests=${KEEPER_TESTS:-$(dirname "$program")/test/keeper}
zookeeper=$work/zookeeper kafka=$work/kafka
golden=$root/tests/golden/znodes/kafka-3.9.txt

stop_all() {
    [ ! -d "$kafka" ] || "$root/tests/tools/kafka" stop "$kafka"
    [ ! -d "$zookeeper" ] || "$root/tests/tools/zookeeper" stop "$zookeeper"
    at_exit
}
trap stop_all EXIT

quota() { # ARG...
    "$root/tests/tools/kafka" tool kafka-3.9 kafka.admin.ConfigCommand \
        --bootstrap-server "$bootstrap" --alter "$@" >>"$work/tools.log" 2>&1 || fail "quota $*"
}

ours() { # ARG...: our command line, which administers Kafka too
    "$program" "$@" --bootstrap-server "$bootstrap" >>"$work/tools.log" || fail "$*"
}

[ -x "$tests/kafka_nodes_test" ] || fail "there is no $tests/kafka_nodes_test; make test-keeper builds it"
mkdir -p "$zookeeper" "$kafka"
port=$(free_port)
"$root/tests/tools/zookeeper" start "$zookeeper" "$port" || fail "no ZooKeeper"
bootstrap=127.0.0.1:$((port + 1))
"$root/tests/tools/kafka" start kafka-3.9 "$kafka" $((port + 1)) \
    "zookeeper.connect=127.0.0.1:$port/kafka" || fail "no Kafka on ZooKeeper"

ours topics create plain --partitions 3 --replication-factor 1
ours topics create with.config --partitions 2 --replication-factor 1 \
    --config retention.ms=86400000 --config cleanup.policy=compact,delete \
    --config max.message.bytes=2000000
ours configs alter --topic plain --set segment.bytes=1048576
ours configs alter --broker 1 --set log.cleaner.threads=2
ours configs alter --brokers --set message.max.bytes=1000000
quota --entity-type users --entity-name 'user one*+' --entity-type clients \
    --entity-name 'client/one' --add-config producer_byte_rate=1024,consumer_byte_rate=2048 &
quota --entity-type users --entity-default --add-config request_percentage=50 &
quota --entity-type clients --entity-name c --add-config producer_byte_rate=1 &
quota --entity-type ips --entity-name 127.0.0.1 --add-config connection_creation_rate=100 &
# An idempotent producer takes a block of ids.
echo hello | kcat -b "$bootstrap" -P -t plain -X enable.idempotence=true 2>>"$work/tools.log"
for job in $(jobs -p); do wait "$job" || fail "a quota"; done

"$tests/kafka_nodes_test" "127.0.0.1:$port/kafka" "$work/nodes" >"$work/compared" 2>&1 ||
    { cat "$work/compared" >&2; fail "a node differs"; }
if [ -n "${GOLDEN:-}" ]; then
    {
        echo "# Every node of Apache Kafka $("$root/tests/tools/kafka" version kafka-3.9) in ZooKeeper"
        echo "# after the steps of tests/check/48-kafka-nodes.sh: path, a tab, data (- for null)."
        cat "$work/nodes"
    } >"$golden"
fi
echo "$(wc -l <"$work/nodes") nodes of Apache Kafka are as ours would be"
