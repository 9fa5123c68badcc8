# SPDX-License-Identifier: Apache-2.0
"""What came of a suite, ours beside Apache Kafka's, and the table of all."""
import collections

import suite

HEAD = ("suite", "version", "run", "passed", "failed", "skipped", "excepted", "s",
        "Kafka's run", "passed", "failed", "skipped", "s")
FEW = 4  # As many names as a line may have.


class Row:
    """One suite. `bad` is what fails the run, `passed` what passed with us.

    `chosen` says of a name whether it was to be run; without it all were.
    """

    def __init__(self, one, ours, kafka, seconds, chosen=None):
        self.suite, self.ours, self.seconds = one, ours, seconds
        self.known = {**kafka, **ours}
        self.kafka = {name: kafka[name] for name in kafka
                      if chosen is None or name in ours or chosen(name)}
        self.passed = [name for name, (verdict, _) in ours.items() if verdict == "PASS"]
        self.bad, self.excepted = [], collections.defaultdict(list)
        for name in sorted({**self.kafka, **ours}):
            self._judge(name)

    def _judge(self, name):
        verdict, detail = self.ours.get(name, ("MISSING", "not run"))
        # Apache Kafka is one broker, and has not been asked what wants more: that may skip itself.
        is_asked = self.suite.brokers == 1 or name in self.kafka
        if verdict == "PASS" or verdict == "SKIP" and not is_asked:
            return
        reason = self.suite.reason(name)
        if reason:
            self.excepted[reason].append(name)
        elif self.kafka.get(name, ("PASS", ""))[0] == "PASS" or (
                verdict == "FAIL" and self.kafka[name][0] == "SKIP"):
            self.bad.append((name, verdict, detail))

    def _kafka_too(self):
        return [name for name, (verdict, _) in self.ours.items()
                if verdict == "FAIL" and self.kafka.get(name, ("", ""))[0] == "FAIL"
                and not self.suite.reason(name)]

    def _passes_now(self):
        return [name for name in self.passed
                if not (self.suite.reason(name) or suite.UNSTEADY).startswith(suite.UNSTEADY)]

    def _skipped(self):
        """{why: [name...]} of what skips itself and need not be excepted."""
        skipped = collections.defaultdict(list)
        for name, (verdict, detail) in self.ours.items():
            if verdict == "SKIP" and not self.suite.reason(name):
                skipped[detail or "by the test itself"].append(name)
        return skipped

    def failures(self):
        """What fails the run, in lines."""
        return self._lines(
            f"{verdict} {name}, with Apache Kafka {self.kafka.get(name, ('not run',))[0]}: {detail}"
            for name, verdict, detail in self.bad)

    def story(self):
        """Everything that is not simply a pass, in lines."""
        out = [f"fails with Apache Kafka too: {name}" for name in self._kafka_too()]
        out += [f"excepted, {reason}: {len(names)}" for reason, names in self.excepted.items()]
        out += [f"skipped, {why}: {', '.join(names) if len(names) <= FEW else len(names)}"
                for why, names in self._skipped().items()]
        out += [f"excepted, but it passes: {name}" for name in self._passes_now()]
        out += [f"excepted, but there is no such test: {pattern}"
                for pattern in self.suite.stale(self.known)]
        return self.failures() + self._lines(out)

    def _lines(self, texts):
        return "".join(f"{self.suite.name}: {text}\n" for text in texts)

    def cells(self):
        """The row of the table."""
        names = [name for names in self.excepted.values() for name in names]
        plain = {name: verdict for name, verdict in self.ours.items() if name not in names}
        return (self.suite.name, self.suite.version(), *counts(plain), len(names),
                self.seconds[0], *counts(self.kafka),
                "recorded" if self.seconds[1] is None else self.seconds[1])


def counts(verdicts):
    """How many were run, passed, failed and skipped."""
    count = collections.Counter(verdict for verdict, _ in verdicts.values())
    return count["PASS"] + count["FAIL"], count["PASS"], count["FAIL"], count["SKIP"]


def table(rows):
    """The table of all suites as text."""
    lines = [HEAD] + [[str(cell) for cell in row.cells()] for row in rows]
    widths = [max(map(len, column)) for column in zip(*lines)]
    return "\n".join("  ".join(cell.ljust(width) if i < 2 else cell.rjust(width)
                               for i, (cell, width) in enumerate(zip(line, widths))).rstrip()
                     for line in lines)
