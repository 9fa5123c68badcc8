#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Apache Kafka's command-line tools against Apache Kafka and against the broker: the same output.

    tools.py KAFKA OURS [--only WORD] [--show]

Both begin without topics. commands.txt says what is asked; each tool's output is compared line by
line, after what a broker chose by itself (ids, ports, times) has got a common name. The order of
lines is not compared: the tools print what a hash map gives them. A line that only one of them has
fails the run unless accepted.txt has it, and so does a line of that list which nothing needs.
"""
import argparse
import collections
import fnmatch
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "differential"))
from peer import Peer  # noqa: E402

CACHE = pathlib.Path(os.environ.get("STRANDLINE_PEERS")
                     or pathlib.Path.home() / ".cache" / "strandline-peers")
CLASSES = {
    "topics": "TopicCommand", "configs": "ConfigCommand", "offsets": "GetOffsetShell",
    "groups": "consumer.group.ConsumerGroupCommand", "log-dirs": "LogDirsCommand",
    "delete-records": "DeleteRecordsCommand", "broker-api-versions": "BrokerApiVersionsCommand",
    "cluster": "ClusterTool", "all-groups": "GroupsCommand", "producer": "ConsoleProducer",
    "consumer": "consumer.ConsoleConsumer",
}
OWN = ("member", "leave")
END = "\x1e"
COMMON = (  # what is different in any two brokers
    (r"127\.0\.0\.1:\d+|127\.0\.0\.1 +\d+", "HOST:PORT"),
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UUID"),
    (r"(?<![\w-])[\w-]{22}(?![\w-])", "ID"),
    (r"\d{4}-\d\d-\d\dT[\d:.]+Z?|\d{13}", "TIME"),
    (r"/[\w./-]*/data\b", "DATA"),
    (r'"size": [1-9]\d*', '"size": SOME'),  # a record holds the clock in as few bytes as it can
    (r"(\.errors\.\w+): .*", r"\1: MESSAGE"),
)


class Command:
    """A line of commands.txt."""

    def __init__(self, line):
        self.changes = line.startswith("!")
        self.text, _, self.input = line.removeprefix("!").partition(" <<< ")
        self.words = shlex.split(self.text)

    def encoded(self, peer, address, work):
        args = [word.replace("{work}", work) for word in self.words[1:]]
        args = [re.sub(r"\{id:(.*?)\}", lambda m: topic_id(peer, m[1]), word) for word in args]
        tool = self.words[0]
        if tool not in OWN:
            tool = "org.apache.kafka.tools." + CLASSES[tool]
            args += ["--bootstrap-server", address]
        return "\t".join([self.input, tool, *args]) + "\n"


def topic_id(peer, name):
    import base64
    topics = peer.ask("Metadata", 12, {"topics": [{"name": name, "topic_id": bytes(16)}]})["topics"]
    return base64.urlsafe_b64encode(topics[0]["topic_id"])[:22].decode()


def run_all(commands, address, settles, work):
    """Carry out all commands on one broker and return the output of each."""
    peer, outputs = Peer("broker", address, settles), []
    peer.begin()
    path = (CACHE / "kafka" / "cp.txt").read_text(encoding="utf-8")
    java = subprocess.Popen(
        ["java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
         f"-Dlog4j2.configurationFile=file:{HERE}/log4j2.properties",
         "-cp", f"{path}:{CACHE / 'kafka-tools'}", "Tools", address],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        for command in commands:
            java.stdin.write(command.encoded(peer, address, work))
            java.stdin.flush()
            outputs.append(read_output(java.stdout))
            if command.changes:
                peer.settle()
    finally:
        java.kill()
        java.wait()
    return outputs


def read_output(stream):
    lines = []
    for line in stream:
        if line.startswith(END):
            return [*lines, f"exit {line[1:].strip()}"]
        lines.append(line.rstrip("\n"))
    sys.exit(f"the tools ended after: {lines}")


def of_log_dirs(text):
    """Return the JSON of kafka-log-dirs as lines."""
    for broker in json.loads(text)["brokers"]:
        for each in broker["logDirs"]:
            yield f"broker {broker['broker']} {each['logDir']} error {each['error']}"
            for part in each["partitions"]:
                yield f"{each['logDir']}: " + json.dumps(part)


def comparable(output):
    """Return a Counter of an output's lines."""
    lines = []
    for line in output:
        if re.match(r"\s+at |\s*$", line):  # Java's stack
            continue
        lines += of_log_dirs(line) if line.startswith('{"brokers"') else [line]
    for pattern, name in COMMON:
        lines = [re.sub(pattern, name, line) for line in lines]
    return collections.Counter(in_order(re.sub(r"\s+", " ", line).strip()) for line in lines)


def in_order(line):
    """Return a line with the lists in it sorted: they have the order of a hash map."""
    head, separator, tail = line.partition(" Configs: ")
    if separator:
        return head + separator + ", ".join(sorted(re.split(r",(?=[\w.]+=)", tail)))
    if re.search(r"Valid \w+ are|scenarios:|combination", line):
        return " ".join(sorted(re.findall(r"\w\S*\w", line)))
    return line


class Accepted:
    """The list: `command | kafka or ours | line | reason`; `*` stands for anything."""

    def __init__(self, path):
        self.rules = []
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if line.strip() and not line.startswith("#"):
                parts = [part.strip() for part in line.split(" | ")]
                assert len(parts) == 4 and parts[3], f"{path}:{number}: no rule with a reason"
                self.rules.append([number, parts[:3], 0, line])

    def has(self, *words):
        for rule in self.rules:
            if all(fnmatch.fnmatchcase(word, pattern.replace("[", "[[]"))
                   for word, pattern in zip(words, rule[1])):
                rule[2] += 1
                return True
        return False


def compare(command, kafka, ours, accepted, show):
    """Print the lines that only one of them has; return whether all of them are accepted."""
    is_right = True
    kafka, ours = comparable(kafka), comparable(ours)
    for whose, lines in (("kafka", kafka - ours), ("ours", ours - kafka)):
        for line in lines:
            is_known = accepted.has(command.text, whose, line)
            is_right &= is_known
            if show or not is_known:
                print(f"{'accepted' if is_known else 'DIFFERS'} {command.text} | {whose} | {line}")
    return is_right


def read_commands(work):
    commands = []
    for line in (HERE / "commands.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("@"):
            name, _, content = line[1:].partition(" ")
            (work / name).write_text(content + "\n", encoding="utf-8")
        elif line and not line.startswith("#"):
            commands.append(Command(line))
    return commands


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kafka")
    parser.add_argument("ours")
    parser.add_argument("--only", default="", help="report only commands with this word")
    parser.add_argument("--show", action="store_true", help="print accepted differences too")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as work, ThreadPoolExecutor(2) as pool:
        commands = read_commands(pathlib.Path(work))
        runs = [pool.submit(run_all, commands, address, settles, work)
                for address, settles in ((args.kafka, True), (args.ours, False))]
        outputs = list(zip(commands, *(run.result() for run in runs)))
    accepted = Accepted(HERE / "accepted.txt")
    chosen = [each for each in outputs if args.only in each[0].text]
    passed = sum(compare(*each, accepted, args.show) for each in chosen)
    unused = [rule for rule in accepted.rules if not rule[2] and not args.only]
    for number, _, _, line in unused:
        print(f"UNUSED accepted.txt:{number}: this difference is gone: {line}")
    failed = len(chosen) - passed + len(unused)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
