#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Drop from the checkpoints of a copied log directory the partitions that were not copied.

    prune_checkpoints.py DIRECTORY

A checkpoint file is a version, a count, and one `topic partition offset` per line.
"""
import pathlib
import sys

for path in pathlib.Path(sys.argv[1]).glob("*checkpoint"):
    version, _, *rows = path.read_text(encoding="utf-8").splitlines()
    kept = [row for row in rows if (path.parent / "-".join(row.split()[:2])).is_dir()]
    path.write_text("\n".join([version, str(len(kept)), *kept]) + "\n", encoding="utf-8")
