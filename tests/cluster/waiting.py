# SPDX-License-Identifier: Apache-2.0
"""What the checks of clusters wait for, and what they read of a broker's disk."""
import pathlib
import time

HEAL_S = 60


class Late(AssertionError):
    """It has not become so in time."""


def wait_for(ask, what, ok=bool, seconds=HEAL_S):
    """Ask until the answer will do; None never does."""
    end = time.monotonic() + seconds
    while True:
        got = ask()
        if got is not None and ok(got):
            return got
        if time.monotonic() > end:
            raise Late(f"{what}: not within {seconds} s; last seen {got}")
        time.sleep(0.1)


def log_bytes(directory, topic, partition):
    """All segments of a log behind each other."""
    path = pathlib.Path(directory, f"{topic}-{partition}")
    return b"".join(file.read_bytes() for file in sorted(path.glob("*.log")))
