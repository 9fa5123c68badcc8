#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The commands that talk to a cluster, and dump, against a broker. BROKER=kafka runs the same
# against Apache Kafka.
set -euo pipefail
# shellcheck source=tests/tools/broker.sh
. "$(dirname "$0")/../tools/broker.sh"

program=${STRANDLINE:-$root/build/strandline}

cli() {
    "$program" "$@" --bootstrap-server "$bootstrap"
}

# Apache Kafka answers from metadata that follows the controller's some time later.
settle() {
    [ "${BROKER:-strandline}" != kafka ] || sleep 0.5
}

# expect WHAT EXPECTED GOT
expect() {
    [ "$2" = "$3" ] || fail "$1: expected '$2', got '$3'"
}

# refused STATUS TEXT COMMAND...: it fails with that status and one line that contains the text
refused() {
    local status=0 want=$1 text=$2
    shift 2
    "$@" >"$work/refused" 2>&1 || status=$?
    expect "status of '$*'" "$want" "$status"
    expect "lines of '$*'" 1 "$(wc -l <"$work/refused")"
    grep -q -- "$text" "$work/refused" || fail "'$*' does not say '$text': $(cat "$work/refused")"
}

quietly() {
    "$@" >/dev/null
}

json() { # EXPRESSION: of the JSON value on standard input, called v
    python3 -c "import json, sys; v = json.load(sys.stdin); print($1)"
}

check_topics() {
    expect create "created one" "$(cli topics create one --partitions 3 --config retention.ms=9000000)"
    cli topics create two >/dev/null
    settle
    refused 1 TOPIC_ALREADY_EXISTS cli topics create one
    cli topics create one --if-not-exists
    expect list "one two" "$(cli topics list | tr '\n' ' ' | sed 's/ $//')"
    expect "list as JSON" "['one', 'two']" "$(cli topics list --json | json v)"
    expect alter "one has 5 partitions" "$(cli topics alter one --partitions 5)"
    settle
    expect describe "one 5 9000000" \
        "$(cli topics describe one --json |
            json 'v[0]["topic"], len(v[0]["partitions"]), v[0]["configs"]["retention.ms"]' |
            tr -d "(),'")"
    cli topics describe | grep -q 'topic two .*partitions ' || fail "describe does not show two"
    refused 1 INVALID_PARTITIONS cli topics alter one --partitions 2
    refused 1 INVALID_TOPIC_EXCEPTION cli topics create bad/name
    refused 1 UNKNOWN_TOPIC_OR_PARTITION cli topics describe nope
    expect delete "deleted two" "$(cli topics delete two)"
    settle
    refused 1 UNKNOWN_TOPIC_OR_PARTITION cli topics delete two
}

check_configs() {
    cli configs alter --topic one --set max.message.bytes=2000000 --set cleanup.policy=delete >/dev/null
    cli configs alter --topic one --delete cleanup.policy >/dev/null
    settle
    expect "topic configs" "max.message.bytes=2000000 retention.ms=9000000" \
        "$(cli configs describe --topic one | tr '\n' ' ' | sed 's/ $//')"
    expect "where a value comes from" "default" \
        "$(cli configs describe --topic one --all --json | json 'v["one"]["cleanup.policy"]["source"]')"
    cli configs describe --broker 1 | grep -q '^log.dirs=' || fail "a broker's log.dirs"
    refused 1 INVALID_CONFIG cli configs alter --topic one --set no.such.key=1
    refused 1 UNKNOWN_TOPIC_OR_PARTITION cli configs describe --topic nope
    refused 1 BROKER_NOT_AVAILABLE cli configs describe --broker 77
}

# Every codec and every acks, byte for byte, and the codec that was stored.
check_records() {
    local codec acks
    seq 20000 >"$work/lines"
    for codec in none gzip snappy lz4 zstd; do
        cli topics create "c-$codec" --partitions 2 >/dev/null
        cli produce "c-$codec" --compression "$codec" --file "$work/lines"
        cli consume "c-$codec" --offset earliest --exit-at-end | sort -n | cmp - "$work/lines" ||
            fail "$codec: not what was written"
    done
    for acks in all 1 0; do
        cli topics create "a-$acks" --partitions 1 >/dev/null
        cli produce "a-$acks" --acks "$acks" <"$work/lines"
        cli consume "a-$acks" --offset earliest --count 20000 | cmp - "$work/lines" ||
            fail "acks=$acks: not what was written, in order"
    done
}

check_fields() {
    cli topics create fields --partitions 1 >/dev/null
    printf 'k1:v1\nk2:NULL\n:v3\n' |
        cli produce fields --key-separator : --null-value NULL --header h=1 --header h=2 \
            --timestamp 1700000000000 >/dev/null
    printf '\377\376' | cli produce fields --whole --key-separator '' --timestamp 1700000005000
    expect text "1700000000000|0|0|h=1,h=2|k1|v1 1700000000000|0|1|h=1,h=2|k2|null" \
        "$(cli consume fields --offset earliest --count 2 --separator '|' \
            --print timestamp,partition,offset,headers,key | tr '\n' ' ' | sed 's/ $//')"
    expect JSON "0 k1 v1 2" "$(cli consume fields --offset 0 --count 1 --json |
        json 'v["offset"], v["key"], v["value"], len(v["headers"])' | tr -d "(),'")"
    expect tombstone "None" "$(cli consume fields --offset 1 --count 1 --json | json 'v["value"]')"
    expect "empty key" "''" "$(cli consume fields --offset 2 --count 1 --json | json 'repr(v["key"])')"
    expect base64 "{'base64': '//4='}" \
        "$(cli consume fields --offset -1 --count 1 --json | json 'v["value"]')"
    expect timestamp 3 "$(cli consume fields --timestamp 1700000000001 --count 1 --json |
        json 'v["offset"]')"
    expect "result of produce" "0 4" "$(echo x | cli produce fields --json |
        json 'v["partition"], v["offset"]' | tr -d '(),')"
    expect "end of the log" "" "$(cli consume fields --exit-at-end)"
    expect "committed" 5 "$(cli consume fields --offset earliest --exit-at-end \
        --isolation read_committed --print offset | wc -l)"
}

check_errors() {
    refused 1 REFUSED "$program" topics list --bootstrap-server 127.0.0.1:1
    refused 1 REFUSED "$program" produce one --bootstrap-server 127.0.0.1:1 <<<x
    refused 1 REFUSED "$program" consume one --bootstrap-server 127.0.0.1:1
    refused 1 "not a list of addresses" "$program" topics list --bootstrap-server :x
    refused 1 UNKNOWN_TOPIC_OR_PARTITION cli consume nope
    refused 1 OFFSET_OUT_OF_RANGE cli consume fields --offset 1000000
    refused 1 UNKNOWN_TOPIC_OR_PARTITION cli produce one --partition 99 <<<x
    refused 1 "no key separator" cli produce one --key-separator = <<<x
    refused 1 "does not exist" cli produce one --file "$work/nope"
    refused 2 "say what to do" cli topics
    refused 2 "has to be a number" cli consume one --count x
    refused 2 "read_committed" cli consume one --isolation serial
    for command in serve topics configs produce consume dump; do
        "$program" "$command" --help | grep -q "^usage: strandline $command" || fail "$command --help"
    done
    "$program" --version | grep -q '^strandline [0-9]' || fail --version
}

check_dump() {
    local segment codec
    "$program" dump --verify "$work/data" >"$work/sum" || fail "dump finds: $(cat "$work/sum")"
    for codec in none gzip snappy lz4 zstd; do
        "$program" dump --json "$work/data/c-$codec-0" | grep '"kind": "batch"' |
            grep -vq "\"codec\": \"$codec\"" && fail "c-$codec holds another codec"
    done
    "$program" dump --records "$work/data/fields-0" | grep -q 'record offset=0 .*key="k1" value="v1"' ||
        fail "dump --records"
    segment=$work/data/c-none-0/00000000000000000000.log
    printf '\xff' | dd of="$segment" bs=1 seek=1000 conv=notrunc status=none
    refused 1 "$segment: position .*checksum is wrong" quietly "$program" dump "$segment"
}

broker_start --set num.partitions=1
check_topics
check_configs
check_records
check_fields
check_errors
broker_stop
check_dump
