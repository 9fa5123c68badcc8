#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What cannot work at start: one line that names the cause and what to do, and a status that is
# not 0. (`serve --help` for a wrong option is a second line.)
set -euo pipefail
# shellcheck source=tests/tools/broker.sh
. "$(dirname "$0")/../tools/broker.sh"

program=${STRANDLINE:-$root/build/strandline}
passed=0 failed=0

problem() { # what, why
    failed=$((failed + 1))
    echo "FAILED: $1: $2"
}

# Runs `serve ARG...`, which has to end within ten seconds with an error that matches.
refuses() { # what, pattern, command...
    local what=$1 pattern=$2 status=0 lines
    shift 2
    timeout 10 "$@" >"$work/refused.out" 2>"$work/refused" </dev/null || status=$?
    lines=$(grep -cv "^see 'strandline serve --help'" "$work/refused") || true
    if [ $status = 0 ] || [ $status -ge 124 ]; then
        problem "$what" "it ended with $status"
    elif [ -s "$work/refused.out" ]; then
        problem "$what" "it wrote to standard output: $(head -n 1 "$work/refused.out")"
    elif [ "$lines" != 1 ]; then
        problem "$what" "$lines lines: $(head -n 3 "$work/refused" | tr '\n' '|')"
    elif ! grep -qiE "$pattern" "$work/refused"; then
        problem "$what" "it says: $(cat "$work/refused")"
    else
        passed=$((passed + 1))
        echo "ok: $what: $(head -n 1 "$work/refused")"
    fi
}

serve() { # what, pattern, argument...
    local what=$1 pattern=$2
    shift 2
    refuses "$what" "$pattern" "$program" serve --set "log.dirs=$work/other" \
        --set listeners=PLAINTEXT://127.0.0.1:0 "$@"
}

as_nobody() { # what, pattern, directory
    mkdir -p "$work/locked" && chmod 755 "$work" "$work/locked"
    cp "$program" "$work/strandline" && chmod 755 "$work/strandline"
    refuses "$1" "$2" setpriv --reuid=65534 --regid=65534 --clear-groups "$work/strandline" serve \
        --set "log.dirs=$3" --set listeners=PLAINTEXT://127.0.0.1:0
}

broker_start
port=${bootstrap##*:}
serve "a second broker on the same directory" "$work/data.*(in use|locked|another|running)" \
    --set "log.dirs=$work/data"
serve "a busy port" "$port.*(in use|busy)" --set "listeners=PLAINTEXT://127.0.0.1:$port"
serve "a busy port for HTTP" "http.address.*$port.*in use" --set "http.address=127.0.0.1:$port"
serve "an address that is none" "http.address.*nowhere.*numeric" --set http.address=nowhere:1
serve "an address without a port" "http.address=9464.*host:port" --set http.address=9464
broker_stop
if [ "$(id -u)" = 0 ]; then
    as_nobody "a read-only directory" "$work/locked.*log.dirs.*permission" "$work/locked"
    as_nobody "a directory that cannot be made" "$work/locked/new.*log.dirs.*permission" \
        "$work/locked/new"
else
    problem "a read-only directory" "this check wants root, to become another user"
fi
serve "an unknown key" "log.retention.hour.*log.retention.hours" --set log.retention.hour=3
serve "a value of the wrong type" "num.partitions.*many" --set num.partitions=many
serve "a value out of range" "num.partitions" --set num.partitions=0
serve "a setting without a value" "KEY=VALUE|=" --set num.partitions
serve "a SASL listener" "SASL" --set listeners=SASL_PLAINTEXT://127.0.0.1:0
serve "a TLS listener" "SSL" --set listeners=SSL://127.0.0.1:0
serve "an authorizer" "authorizer" --set authorizer.class.name=kafka.security.Authorizer
serve "an unknown option" "wrong|unrecognized|unknown" --wrong
serve "an argument too many" "unexpected.*rubbish" rubbish
serve "a file that is not there" "$work/none.*(no such|exist|not found)" --config "$work/none"
printf 'num.partitions=2\nlog.dirz=/x\n' >"$work/bad.properties"
serve "a bad key in the file" "bad.properties.*log.dirz.*log.dirs" --config "$work/bad.properties"
refuses "a bad value in the environment" "KAFKA_NUM_PARTITIONS.*many|num.partitions.*many" \
    env KAFKA_NUM_PARTITIONS=many "$program" serve --set "log.dirs=$work/other"
refuses "an unknown command" "frobnicate" "$program" frobnicate
echo "$passed passed, $failed failed"
[ $failed = 0 ]
