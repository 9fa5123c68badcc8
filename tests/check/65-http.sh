#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The HTTP port: pages answer while the broker is busy, metrics are well formed and say what was
# done, idle and slow readers harm nobody, probes can tell a start from a failure; and without an
# address there is nothing of it.
set -euo pipefail
# shellcheck source=tests/tools/broker.sh
. "$(dirname "$0")/../tools/broker.sh"

program=${STRANDLINE:-$root/build/strandline}
RECORDS=20000
passed=0

probe() { python3 "$root/tests/http/probe.py" "$@"; }

ok() {
    passed=$((passed + 1))
    echo "ok: $*"
}

url_of() {
    grep ready "$work/out" | grep -oE 'http://127\.0\.0\.1:[0-9]+$' ||
        fail "no URL: $(cat "$work/out")"
}

is() { # SAMPLE VALUE
    local value
    value=$(probe value "$url" "$1") || fail "$value"
    [ "$value" = "$2" ] || fail "$1 is $value and not $2"
}

is_at_least() { # SAMPLE VALUE
    local value
    value=$(probe value "$url" "$1") || fail "$value"
    [ "${value%.*}" -ge "$2" ] || fail "$1 is $value and less than $2"
}

sockets_listening() { # how many the broker has
    local inode n=0
    for inode in $(awk '$4 == "0A" { print $10 }' /proc/net/tcp /proc/net/tcp6); do
        ! ls -l "/proc/$broker_pid/fd" | grep -q "socket:\[$inode\]" || n=$((n + 1))
    done
    echo $n
}

until_watching() {
    until grep -qs . "$work/watched"; do sleep 0.05; done
}

produce() { # TOPIC RECORDS BYTES
    python3 -c 'import sys; n, m = map(int, sys.argv[1:])
for i in range(n): print(str(i).rjust(m, "x"))' "$2" "$3" |
        kcat -P -b "$bootstrap" -t "$1" -p 0 -X batch.size=100000 -X acks=all
}

without_an_address() {
    broker_start
    [ "$(sockets_listening)" = 1 ] || fail "it listens on $(sockets_listening) ports"
    ! grep -q microhttpd "/proc/$broker_pid/maps" || fail "the library is loaded"
    ! grep -q http "$work/out" || fail "it tells of a port: $(cat "$work/out")"
    broker_stop
    ok "without an address nothing listens"
}

under_load() {
    broker_start --set http.address=127.0.0.1:0 --set num.shards=2
    url=$(url_of)
    mkfifo "$work/go"
    probe watch "$url" "$broker_pid" <"$work/go" >"$work/watched" &
    local watcher=$! i
    exec 9>"$work/go"
    for i in 1 2 3; do produce "load-$i" $RECORDS 100; done
    kcat -C -b "$bootstrap" -t load-1 -o beginning -e -q >"$work/read"
    [ "$(wc -l <"$work/read")" = $RECORDS ] || fail "not all was read"
    exec 9>&-
    wait $watcher || fail "$(cat "$work/watched")"
    ok "$(sed -n "s/^ok: //p" "$work/watched")"
}

what_was_done() {
    local name=kafka_server_brokertopicmetrics size
    is "${name}_messagesin_total{topic=\"load-2\"}" $RECORDS
    is "${name}_messagesin_total" $((3 * RECORDS))
    is 'kafka_log_log_logendoffset{topic="load-1",partition="0"}' $RECORDS
    is 'kafka_log_log_logstartoffset{topic="load-1",partition="0"}' 0
    size=$(stat -c %s "$work/data/load-1-0/00000000000000000000.log")
    is 'kafka_log_log_size{topic="load-1",partition="0"}' "$size"
    is "${name}_bytesin_total{topic=\"load-1\"}" "$size"
    is_at_least "${name}_bytesout_total{topic=\"load-1\"}" "$size"
    is "${name}_bytesout_total{topic=\"load-2\"}" 0
    is "${name}_failedproducerequests_total" 0
    is kafka_server_replicamanager_partitioncount 3
    is kafka_controller_kafkacontroller_globaltopiccount 3
    is_at_least 'kafka_network_requestmetrics_requests_total{request="Produce"}' 3
    is_at_least "kafka_log_logflushstats_logflushrateandtimems_count{logdirectory=\"$work/data\"}" 3
    ok "metrics say what was produced, stored and read"
}

errors_and_groups() {
    local errors=kafka_network_requestmetrics_errors_total
    ! "$program" topics delete nowhere --bootstrap-server "$bootstrap" >"$work/tool" 2>&1 ||
        fail "a topic that is not there was deleted"
    is "$errors{request=\"DeleteTopics\",error=\"UNKNOWN_TOPIC_OR_PARTITION\"}" 1
    timeout 60 kcat -b "$bootstrap" -G watched load-1 -e -q -X auto.offset.reset=earliest \
        >"$work/read" 2>"$work/tool" || fail "no group: $(cat "$work/tool")"
    is kafka_coordinator_group_groupmetadatamanager_numgroups 1
    is_at_least kafka_coordinator_group_groupmetadatamanager_numoffsets 1
    ok "errors and groups are counted"
}

a_crowd() {
    local said
    said=$(probe crowd "$url" "$broker_pid") || fail "$said"
    produce load-1 10 100
    is 'kafka_log_log_logendoffset{topic="load-1",partition="0"}' $((RECORDS + 10))
    ok "${said#ok: } harm nobody"
    broker_stop
}

a_start() {
    local port
    port=$(free_port)
    broker_start --set flush.on.ack=false --set "http.address=127.0.0.1:$port" \
        --set http.partition.metrics.max=1
    url=http://127.0.0.1:$port
    is strandline_partition_metrics_left_out 52
    ! probe value "$url" 'kafka_log_log_size{topic="load-1",partition="0"}' >/dev/null ||
        fail "more partitions than http.partition.metrics.max"
    produce large 3000 100000
    broker_kill
    rm "$work/data/recovery-point-offset-checkpoint" # All of it is to be looked through.
    rm "$work/watched"
    probe starts "$url" >"$work/watched" &
    local watcher=$!
    until_watching
    broker_start --set "http.address=127.0.0.1:$port"
    wait $watcher || fail "$(cat "$work/watched" "$work/out")"
    ok "$(sed -n "s/^ok: //p" "$work/watched")"
    broker_stop
}

# No file may grow beyond 16 MiB: a write that fails is a directory that fails.
a_failed_directory() {
    local watcher
    trap '' XFSZ
    ulimit -S -f 16384
    broker_start --ephemeral --set http.address=127.0.0.1:0
    ulimit -S -f unlimited
    url=$(url_of)
    produce full 120 100000
    rm "$work/watched"
    probe fails "$url" "$bootstrap" full >"$work/watched" &
    watcher=$!
    until_watching
    produce full 120 100000 2>"$work/tool" || true
    wait $watcher || fail "$(cat "$work/watched")"
    wait "$broker_pid" && fail "it ended as if nothing had been"
    broker_pid=
    ok "unhealthy when its only directory has failed"
}

a_busy_port() {
    broker_start --ephemeral
    local taken status=0
    taken=$(url_of)
    "$program" serve --set "log.dirs=$work/other" --set listeners=PLAINTEXT://127.0.0.1:0 \
        --set "http.address=${taken#http://}" >"$work/tool" 2>&1 || status=$?
    [ $status = 1 ] || fail "it ended with $status"
    grep -q "http.address: cannot listen on ${taken#http://}: the port is in use" "$work/tool" ||
        fail "it says: $(cat "$work/tool")"
    broker_stop
    ok "a busy port is an error that names it"
}

without_an_address
under_load
what_was_done
errors_and_groups
a_crowd
a_start
a_failed_directory
a_busy_port
echo "$passed passed, 0 failed"
