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

lines() { # in one line
    tr '\n' ' ' | sed 's/ $//'
}

offsets() { # GROUP: topic-partition:offset:end:lag of each row
    cli groups describe "$1" --json | json '" ".join("%s-%s:%s:%s:%s" % (p["topic"],
        p["partition"], p["offset"], p["end"], p["lag"]) for p in v[0]["partitions"])'
}

reset() {
    cli groups reset-offsets "$@" | lines
}

# Of a group that never had a member.
check_offsets() {
    cli topics create lag --partitions 2 >/dev/null
    settle
    seq 10 | cli produce lag --partition 0 --timestamp 1700000000000 >/dev/null
    seq 10 | cli produce lag --partition 0 --timestamp 1700000005000 >/dev/null
    seq 8 | cli produce lag --partition 1 >/dev/null
    refused 1 GROUP_ID_NOT_FOUND cli groups describe moved
    refused 1 "has no offsets" cli groups reset-offsets moved --offset earliest
    expect "dry run" "lag-0  from -  to 4 lag-1  from -  to 4 dry run, nothing was changed; --execute does it" \
        "$(reset moved --topic lag --offset 4)"
    refused 1 GROUP_ID_NOT_FOUND cli groups describe moved
    expect "offset" "lag-0  from -  to 4 lag-1  from -  to 4" \
        "$(reset moved --topic lag --offset 4 --execute)"
    expect "lag" "lag-0:4:20:16 lag-1:4:8:4" "$(offsets moved)"
    expect "lag as text" "group moved  state Empty  protocol -  coordinator 1  members 0  lag 20" \
        "$(cli groups describe moved | head -n 1)"
    expect "shift of one partition" "lag-1  from 4  to 1" \
        "$(reset moved --topic lag:1 --shift -3 --execute)"
    expect "shift beyond the end" "lag-0  from 4  to 20 lag-1  from 1  to 8" \
        "$(reset moved --shift 1000 --execute)"
    expect "timestamp" "lag-0  from 20  to 10" \
        "$(reset moved --topic lag:0 --timestamp 1700000000001 --execute)"
    expect "duration" "lag-0:10:20:10 lag-1:0:8:8" \
        "$(reset moved --topic lag:1 --duration 1h --execute >/dev/null; offsets moved)"
    expect "time that no record has reached" "lag-0  from 10  to 20 lag-1  from 0  to 8" \
        "$(reset moved --duration 0s --execute)"
    expect "earliest" "lag-0  from 20  to 0 lag-1  from 8  to 0" \
        "$(reset moved --offset earliest --execute)"
    expect "latest" "False [('lag', 0, 0, 20), ('lag', 1, 0, 8)]" \
        "$(cli groups reset-offsets moved --offset latest --json | json 'v["executed"],
            [tuple(p.values()) for p in v["partitions"]]' | sed 's/^(//; s/)$//; s/False, /False /')"
    expect "nothing but that was changed" "lag-0:0:20:20 lag-1:0:8:8" "$(offsets moved)"
    expect "delete-offsets" "['lag-1']" \
        "$(cli groups delete-offsets moved --topic lag:1 --json | json v)"
    expect "what is left" "lag-0:0:20:20" "$(offsets moved)"
    refused 1 "has no such offsets" cli groups delete-offsets moved --topic lag:1
    refused 1 "that could be shifted" cli groups reset-offsets moved --topic lag --shift 1
    refused 1 UNKNOWN_TOPIC_OR_PARTITION cli groups reset-offsets moved --topic nope --offset 1
    refused 1 UNKNOWN_TOPIC_OR_PARTITION cli groups reset-offsets moved --topic lag:9 --offset 1
}

# Of a group with a member, which is the broker's business: it must not be moved or deleted.
check_members() {
    local member
    kcat -q -b "$bootstrap" -G live lag >/dev/null 2>&1 &
    member=$!
    for _ in $(seq 600); do
        cli groups describe live 2>/dev/null | grep -q 'state Stable .*members 1 ' && break
        sleep 0.05
    done
    expect "a member and what it reads" "Stable 1 rdkafka /127.0.0.1 2" \
        "$(cli groups describe live --json | json 'v[0]["state"], len(v[0]["members"]),
            v[0]["members"][0]["client_id"], v[0]["members"][0]["client_host"],
            sum(p["member"] == v[0]["members"][0]["member_id"] for p in v[0]["partitions"])' |
            tr -d "(),'")"
    expect list "live moved" "$(cli groups list | lines)"
    expect "describe all" "live moved" "$(cli groups describe | grep -oP '^group \K\S+' | lines)"
    expect "list as JSON" "live Stable classic consumer" \
        "$(cli groups list --json | json '" ".join(v[0].values())')"
    refused 1 NON_EMPTY_GROUP cli groups reset-offsets live --topic lag --offset 0 --execute
    refused 1 NON_EMPTY_GROUP cli groups delete live
    cli groups reset-offsets moved --topic lag --offset 0 --execute >/dev/null
    kill "$member"
    wait "$member" || true
    expect delete "deleted live deleted moved" "$(cli groups delete live moved | lines)"
    cli groups reset-offsets moved --topic lag --offset 0 --execute >/dev/null
    expect "delete as JSON" "['moved']" "$(cli groups delete moved --json | json v)"
    expect "none left" "[]" "$(cli groups list --json | json v)"
    refused 1 GROUP_ID_NOT_FOUND cli groups delete live
}

# A Strandline broker that is alone does not serve elections and moves, and says so.
alone() { # TEXT COMMAND...: what Apache Kafka answers
    local want=$1
    shift
    if [ "${BROKER:-strandline}" = kafka ]; then
        expect "$*" "$want" "$("$@" | lines)"
    else
        refused 1 "without zookeeper.connect is alone" "$@"
    fi
}

check_leaders() {
    expect leaders "one-0  leader 1  epoch 0  preferred 1  same" \
        "$(cli leaders list one | head -n 1)"
    expect "leaders of all" "$(cli topics describe --json | json \
        'sum(len(t["partitions"]) for t in v)')" "$(cli leaders list --json | json 'v["count"]')"
    expect "leaders as JSON" "5 [{'broker': 1, 'leads': 5}] 0 0" \
        "$(cli leaders list one --json | json '"%s %s %s %s" % (len(v["partitions"]),
            v["brokers"], v["not_preferred"], v["offline"])')"
    expect "--not-preferred" "partitions 7  not preferred 0  no leader 0  led by broker 1: 7" \
        "$(cli leaders list one lag --not-preferred)"
    alone "one-0  already one-3  already elected 0  already 2  failed 0" \
        cli leaders elect --topic one --partition 3 --partition 0 --partition 3
    alone "elected 0  already $(cli leaders list --json | json 'v["count"]')  failed 0" \
        cli leaders elect
    refused 1 UNKNOWN_TOPIC_OR_PARTITION cli leaders list nope
    refused 1 UNKNOWN_TOPIC_OR_PARTITION cli leaders elect --topic nope
    refused 1 "no partition 5 of topic one, which has 5" cli leaders elect --topic one --partition 5
    refused 2 "may lose records" cli leaders elect --unclean
    refused 2 "needs a --topic" cli leaders elect --partition 1
    refused 2 "write --topic one" cli leaders elect one
    refused 2 "only list takes" cli leaders elect --not-preferred
    refused 2 "only elect takes" cli leaders list --topic one
}

plan() { # TEXT JSON: this plan is refused with that text
    echo "$2" >"$work/plan"
    refused 1 "$1" cli reassign start --plan "$work/plan"
}

check_reassign() {
    cli reassign start lag one --brokers 1 --dry-run >"$work/way"
    expect "a dry run" "1 [1] lag-0 lag-1 one-0 one-1 one-2 one-3 one-4" \
        "$(json 'v["version"], v["partitions"][0]["replicas"], *("%s-%s" % (p["topic"],
            p["partition"]) for p in v["partitions"])' <"$work/way" | tr -d "(),'")"
    expect "a plan that is fulfilled" \
        "lag-0  from 1  to 1  already there 0 of 7 partitions moving" \
        "$(cli reassign start --plan "$work/way" --wait | sed -n '1p;$p' | lines)"
    expect "a fulfilled plan as JSON" "{'already there'} True" \
        "$(cli reassign start one:2 --replicas 1 --json | json '"%s %s" % ({p["result"] for p in
            v["partitions"]}, v["before"] == v["plan"])')"
    alone "0 partitions moving" cli reassign list
    alone "0 partitions moving" cli reassign list one
    alone "[]" cli reassign list --json
    alone "0 partitions moving" cli reassign cancel --all
    refused 1 "broker 7, which is not there: the cluster has brokers 1;" \
        cli reassign start one --brokers 7
    refused 1 "broker 2, which is not there" cli reassign start one:0 --replicas 1,2
    refused 1 "no partition 9 of topic one" cli reassign start one:9 --replicas 1
    refused 1 UNKNOWN_TOPIC_OR_PARTITION cli reassign start nope --brokers 1
    refused 1 UNKNOWN_TOPIC_OR_PARTITION cli reassign list nope
    refused 1 "plan: cannot be read" cli reassign start --plan "$work/no/plan"
    plan "plan: line 1, column 12: " '{"version" 1}'
    plan "plan: line 3, column 0: .*end of file" '{
        "version": 1'
    plan "no list 'partitions'" '[]'
    plan "'version' has to be 1" '{"version": 2, "partitions": []}'
    plan "'partitions' is empty" '{"version": 1, "partitions": []}'
    plan "partitions\[0\]: 'topic'" '{"partitions": [{"partition": 0, "replicas": [1]}]}'
    plan "partitions\[0\]: 'partition'" '{"partitions": [{"topic": "one", "replicas": [1]}]}'
    plan "partitions\[1\]: 'replicas' has to be" '{"partitions": [
        {"topic": "one", "partition": 0, "replicas": [1]},
        {"topic": "one", "partition": 1, "replicas": []}]}'
    plan "partitions\[0\]: broker 1 is there twice" \
        '{"partitions": [{"topic": "one", "partition": 0, "replicas": [1, 1]}]}'
    plan "partitions\[0\] and partitions\[1\] are both one-0" '{"partitions": [
        {"topic": "one", "partition": 0, "replicas": [1]},
        {"topic": "one", "partition": 0, "replicas": [1]}]}'
    plan "plan: partitions\[1\]: one-1 cannot move to broker 3" '{"partitions": [
        {"topic": "one", "partition": 0, "replicas": [1]},
        {"topic": "one", "partition": 1, "replicas": [3], "log_dirs": ["any"]}]}'
    plan "log_dirs\[0\] names a directory" '{"partitions": [
        {"topic": "one", "partition": 1, "replicas": [1], "log_dirs": ["/tmp"]}]}'
    refused 2 "in one way" cli reassign start one
    refused 2 "in one way" cli reassign start one --brokers 1 --plan "$work/plan"
    refused 2 "is for one partition" cli reassign start one --replicas 1
    refused 2 "is for whole topics" cli reassign start one:0 --brokers 1
    refused 2 "broker 1 is there twice" cli reassign start one:0 --replicas 1,1
    refused 2 "list of broker ids" cli reassign start one:0 --replicas ''
    refused 2 "list of broker ids" cli reassign start one:0 --replicas 1,x
    refused 2 "needs as many --brokers" cli reassign start one --brokers 1 --replication-factor 2
    refused 2 "form TOPIC or TOPIC:0" cli reassign start one:x --replicas 1
    refused 2 "either TOPIC" cli reassign cancel
    refused 2 "either TOPIC" cli reassign cancel one --all
    refused 2 "no options" cli reassign list --wait
}

check_cluster() {
    local topics partitions
    topics=$(cli topics list --internal | wc -l)
    partitions=$(cli leaders list --json | json 'v["count"]')
    expect cluster "1 1 $topics True" "$(cli cluster --json | json 'v["controller"],
        v["brokers"][0]["broker"], v["topics"], v["partitions"] >= v["topics"]' | tr -d '(),')"
    cli cluster | grep -q '^cluster [A-Za-z0-9_-]*  controller 1  brokers 1  topics ' || fail cluster
    cli cluster | grep -q "^  broker 1  address $bootstrap  leads $partitions  replicas $partitions\$" ||
        fail "a broker's address and counts"
    expect "what is not well" "  under-replicated 0  under-min-isr 0  offline 0  moving 0" \
        "$(cli cluster | sed -n 2p)"
    expect "what is not well, as JSON" "0 0 0 0 [] $partitions" \
        "$(cli cluster --json | json '"%s %s %s %s %s %s" % (v["under_replicated"],
            v["under_min_isr"], v["offline"], v["moving"], v["absent"], v["brokers"][0]["leads"])')"
    expect "a partition" "1  epoch 0  replicas 1  in sync 1  out of sync -  end 20 284 bytes 1:20" \
        "$(cli cluster --partitions | sed -n 's/^lag-0 *leader \(.*end 20\) *size \(.* bytes\)  ends /\1 \2 /p')"
    expect "partitions as JSON" "$partitions 8 [(1, True, 8, 0, True, '$work/data', None)]" \
        "$(cli cluster --partitions --json | json '*((len(v["partition_list"]), p["end"], [(*list(
            l.values())[:4], l["size"] > 60, *list(l.values())[5:]) for l in p["logs"]])
            for p in v["partition_list"] if (p["topic"], p["partition"]) == ("lag", 1))' |
            sed "s/^(//; s/)\$//; s/, / /; s/, / /")"
    expect "nothing is unhealthy" "$(cli cluster)" "$(cli cluster --partitions --unhealthy)"
    refused 2 "add that" cli cluster --unhealthy
    cli cluster --api-versions | grep -q '^  api 18  versions 0\.\.[0-9]*  api_versions$' ||
        fail "API versions"
    expect "API versions as JSON" "{'key': 42, 'name': 'delete_groups', 'min': 0, 'max': 2}" \
        "$(cli cluster --api-versions --json |
            json '[a for a in v["brokers"][0]["apis"] if a["key"] == 42][0]' | sed "s/: 3}/: 2}/")"
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
    refused 2 "say what to do" cli groups
    refused 2 "say where" cli groups reset-offsets g
    refused 2 "say once" cli groups reset-offsets g --offset 1 --shift 1
    refused 2 "like 90s" cli groups reset-offsets g --duration 5
    refused 2 "form TOPIC:0,1" cli groups delete-offsets g --topic one:x
    refused 2 "only reset-offsets" cli groups delete g --execute
    refused 2 "it takes no names" cli cluster one
    refused 2 "say what to do" cli leaders
    refused 2 "say what to do" cli reassign
    for command in serve topics configs groups cluster leaders reassign produce consume dump; do
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

"$root/tests/tools/fetch-peers" kcat
broker_start --set num.partitions=1 --set group.initial.rebalance.delay.ms=0
check_topics
check_configs
check_records
check_fields
check_offsets
check_members
check_leaders
check_reassign
check_cluster
check_errors
broker_stop
check_dump
