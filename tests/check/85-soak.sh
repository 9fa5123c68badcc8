#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Eight chosen cells of tests/soak, once each: three real brokers on machines of their own (network
# namespaces), whose processes are killed and paused, whose network is cut and whose disks lose what
# was not synced. `make soak` runs the whole matrix. CELLS and SECONDS_EACH choose others.
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
keep=$(mktemp -d "${TMPDIR:-/tmp}/strandline-soak-failed.XXXXXX")

"$root/tests/tools/fetch-peers" kafka-3.9
# shellcheck disable=SC2086 # cells are words
"$root/tests/soak/soak.py" "${STRANDLINE:-$root/build/strandline}" ${CELLS:---choice --runs 1} \
    --seconds "${SECONDS_EACH:-20}" --keep "$keep"
rm -rf "$keep"
