#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The broker as a service: what its supervisor is told by datagrams (sd_notify) during a recovery,
# when clients are served and when it stops; the log as JSON, with priorities for the journal, and
# whole whatever clients are called.
set -euo pipefail
# shellcheck source=tests/tools/broker.sh
. "$(dirname "$0")/../tools/broker.sh"

passed=0
listener=

supervisor() { python3 "$root/tests/service/supervisor.py" "$@"; }

ok() {
    passed=$((passed + 1))
    echo "ok: $*"
}

supervise() { # SOCKET
    : >"$work/told"
    python3 "$root/tests/service/supervisor.py" listen "$1" >"$work/told" &
    listener=$!
    trap 'kill $listener 2>/dev/null || true; at_exit' EXIT
    until grep -q listening "$work/told"; do sleep 0.05; done
    export NOTIFY_SOCKET=$1
}

told() { # PATTERN: it has been told this, or is within a moment
    for _ in $(seq 100); do
        ! grep -qE "$1" "$work/told" || return 0
        sleep 0.05
    done
    fail "not told '$1' but: $(cat "$work/told")"
}

end_supervision() {
    kill $listener
    wait $listener 2>/dev/null || true
    unset NOTIFY_SOCKET
}

starts_and_stops() { # SOCKET
    supervise "$1"
    broker_start
    told "^READY=1; STATUS=serving on $bootstrap\$"
    ! grep -q STOPPING "$work/told" || fail "it stops already"
    broker_stop
    told '^STOPPING=1; STATUS=stopping: SIGTERM$'
    [ "$(grep -n READY=1 "$work/told" | cut -d: -f1)" -lt "$(grep -n STOPPING=1 "$work/told" | cut -d: -f1)" ] ||
        fail "in another order: $(cat "$work/told")"
    end_supervision
    ok "told on $1"
}

nobody_listens() {
    NOTIFY_SOCKET=$work/nobody broker_start
    broker_stop
    ok "nobody listens, and nothing is the matter"
}

# Progress is told once a second. The process stands still for longer than that.
a_recovery() {
    local port
    port=$(free_port)
    broker_start --set flush.on.ack=false
    head -c 300000000 /dev/zero | tr '\0' x | fold -w 100000 |
        kcat -P -b "$bootstrap" -t large -X batch.size=1000000
    broker_kill
    rm "$work/data/recovery-point-offset-checkpoint" # All of it is to be looked through.
    supervise "$work/recovery"
    supervisor hold "127.0.0.1:$port" 1.5 >"$work/held" &
    local holder=$!
    until grep -qs watching "$work/held"; do sleep 0.05; done
    broker_start --set "http.address=127.0.0.1:$port"
    wait $holder || fail "it could not be held"
    told '^EXTEND_TIMEOUT_USEC=60000000; STATUS=recovering: 0 of 1 partitions, [0-9]+ MiB scanned$'
    grep -q 'event=broker.recovering loaded=0 partitions=1 scanned_bytes=[0-9]' "$work/err" ||
        fail "it does not say that it recovers: $(cat "$work/err")"
    told '^READY=1'
    broker_stop
    end_supervision
    ok "a recovery asks for more time"
}

json() {
    broker_start --log-format json --set num.io.threads=9
    supervisor forge "$bootstrap"
    echo x | kcat -P -b "$bootstrap" -t events
    broker_stop
    supervisor lines "$work/err" >"$work/events" || fail "$(cat "$work/err")"
    local event
    for event in config.without_effect request.not_served topic.created broker.stopping; do
        grep -q "^$event" "$work/events" || fail "no $event in $(cat "$work/err")"
    done
    ok "the log as JSON: $(wc -l <"$work/events") events"
}

text() {
    broker_start
    supervisor forge "$bootstrap"
    broker_stop
    [ "$(grep -cv '^time=[0-9TZ:.-]* level=[a-z]* event=[a-z._]* ' "$work/err")" = 0 ] ||
        fail "$(cat "$work/err")"
    ok "the log as text: $(wc -l <"$work/err") events, none of them forged"
}

journal() {
    : >"$work/err"
    JOURNAL_STREAM=$(stat -c %d:%i "$work/err") broker_start --set num.io.threads=9
    broker_stop
    grep -q '^<4>strandline serve: warning: ' "$work/err" || fail "$(cat "$work/err")"
    grep -q '^<6>level=info event=broker.stopping' "$work/err" || fail "$(cat "$work/err")"
    JOURNAL_STREAM=1:2 broker_start
    broker_stop
    grep -q '^time=.*event=broker.stopping' "$work/err" || fail "$(cat "$work/err")"
    ok "priorities for the journal, and for nobody else"
}

starts_and_stops "$work/notify"
starts_and_stops "@strandline-check-$$"
nobody_listens
a_recovery
json
text
journal
echo "$passed passed, 0 failed"
