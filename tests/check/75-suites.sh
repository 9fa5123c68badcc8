#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The quick part of other projects' own tests (tests/suites): what Apache Kafka passes, we pass.
# Kafka's verdicts are recorded ones; `make suites` runs it anew. What failed tests print is kept.
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
logs=$(mktemp -d "${TMPDIR:-/tmp}/strandline-suites-logs.XXXXXX")

python3 "$root/tests/suites/suites_test.py"
"$root/tests/suites/suites.py" --choice --ours --logs "$logs" "$@"
rm -rf "$logs"
