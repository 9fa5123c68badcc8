#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A data directory that Apache Kafka left is adopted: its records are read as they were, and what is
# written behind them is sound.
#
# Two things could go wrong in silence. A new idempotent producer could be given an id that the
# directory knows: its first batch would then be taken for an old one's retry, acknowledged and not
# written. And leader epochs could start again below those in the log. So more producers write than
# the directory has ids, and Kafka's dump tool looks at the result.
set -euo pipefail
# shellcheck disable=SC2119 source=tests/tools/broker.sh
. "$(dirname "$0")/../tools/broker.sh"

PRODUCERS=25    # the directory's producers have ids up to 21, and 1000
BATCH_RECORDS=16 # as many as the batches there, so that the sequence numbers are the same
OLD_END=256     # of plain-0
OLD_EPOCH=2

peers=${STRANDLINE_PEERS:-$HOME/.cache/strandline-peers}
"$root/tests/tools/fetch-peers" kafka franz-go
client=$peers/franz-go/client

# Kafka's listing of the directory: offset, sizes of key and value of each record in plain-0.
listed() {
    sed -n '/^Dumping plain-0.*log$/,/^Dumping plain-0.*index$/p' "$root/tests/golden/logdir.txt" |
        sed -n 's/^| offset: \([0-9]*\) .*keySize: \([-0-9]*\) valueSize: \([-0-9]*\) .*/\1 \2 \3/p' |
        sort -n | awk '$1 >= 60'
}

# The same from what a client read: `null` is -1, otherwise two digits a byte after the x.
as_listed() {
    awk 'function size(f) { return f == "null" ? -1 : (length(f) - 1) / 2 }
        $1 == "0" { print $2, size($4), size($5) }'
}

cp -r "$root/tests/golden/logdir" "$work/data"
PYTHONPATH=$root/tests/clients python3 -c 'import dataset, time
rows = [l for l in dataset.lines(7, int(time.time() * 1000), False) if l[0] == "0"]
print("\n".join(rows[-'$BATCH_RECORDS':]))' >"$work/records"

broker_start
"$client" consume "$bootstrap" plain >"$work/read"
diff <(listed) <(as_listed <"$work/read") >"$work/diff" || { head "$work/diff" >&2; fail "records"; }
[ "$("$client" consume "$bootstrap" txn | grep -c '^0 ')" = 9 ] || fail "records of txn"
end=$OLD_END
for number in $(seq "$PRODUCERS"); do
    "$client" produce "$bootstrap" plain lz4 true "$work/records" >"$work/acks"
    [ "$(head -n 1 "$work/acks")" = "0 $end" ] ||
        fail "producer $number: its first record was acknowledged at $(head -n 1 "$work/acks"), not 0 $end"
    end=$((end + BATCH_RECORDS))
done
broker_stop

# Every batch that was added has a later epoch than the last one that was there.
epochs=$("$root/tests/tools/kafka" tool kafka org.apache.kafka.tools.DumpLogSegments --files \
    "$(find "$work/data/plain-0" -name '*.log' | sort | paste -sd,)" 2>/dev/null |
    sed -n 's/^baseOffset: \([0-9]*\) .*partitionLeaderEpoch: \([0-9]*\) .*/\1 \2/p' |
    awk -v old=$OLD_END '$1 >= old { print $2 }' | sort -un)
[ -n "$epochs" ] || fail "no batch was added"
for epoch in $epochs; do
    [ "$epoch" -gt $OLD_EPOCH ] || fail "batches behind the adopted ones have leader epoch $epoch"
done
broker_start
[ "$("$client" consume "$bootstrap" plain | grep -c '^0 ')" = $((end - 60)) ] || fail "after a restart"
broker_stop
echo "directories: $((OLD_END - 60)) records adopted, $((end - OLD_END)) written behind them"
