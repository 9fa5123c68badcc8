#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Real clients: each writes with every codec and each reads what each wrote, byte for byte.
# BROKER=kafka runs the same against Apache Kafka.
set -euo pipefail
# shellcheck source=tests/tools/broker.sh
. "$(dirname "$0")/../tools/broker.sh"

"$root/tests/tools/fetch-peers" kcat librdkafka librdkafka-new java franz-go kafka-python \
    kafka-python-old kafkajs java-console
broker_start --ephemeral --set num.partitions=3
python3 "$root/tests/clients/matrix.py" "$bootstrap"
broker_stop
