# SPDX-License-Identifier: Apache-2.0
"""Three brokers, ZooKeeper and clients, each on a machine of its own (net.py, disk.c)."""
import json
import mmap
import os
import pathlib
import random
import signal
import struct
import subprocess
import sys
import time

import net

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/cluster"))
from waiting import Late, wait_for  # noqa: E402 (the path is set above)

BROKERS = 3
PORT = 9092
SESSION_MS = 4000
ENDING_S = 0.5  # whose disk has failed a moment ago has said by then that it stops
END_BYTES = 65536  # of a log, in which it says so
LAG_MS = 3000
STOP_S = 10
SETTINGS = {
    "zookeeper.session.timeout.ms": SESSION_MS,
    "replica.lag.time.max.ms": LAG_MS,
    "group.initial.rebalance.delay.ms": 0,
    "log.segment.bytes": 1 << 20,
    "offsets.topic.num.partitions": 4,
}


class Violation(Exception):
    """A promise is broken."""


class Invalid(Exception):
    """The run proves nothing."""


class Disk:
    """What the layer under a broker is told (struct disk_control)."""

    FIELDS = {"write_errno": 0, "sync_errno": 4, "short_every": 8, "sync_delay_us": 12}
    BITTEN = 16

    def __init__(self, place):
        os.makedirs(f"{place}/data")
        with open(f"{place}/control", "w+b") as file:
            file.truncate(24)
            self.map = mmap.mmap(file.fileno(), 24)

    def set(self, **values):
        for name, value in values.items():
            struct.pack_into("<i", self.map, self.FIELDS[name], value)

    def heal(self):
        self.set(**{name: 0 for name in self.FIELDS})

    def bitten(self):
        return struct.unpack_from("<q", self.map, self.BITTEN)[0]


class Broker:
    def __init__(self, world, machine, number):
        self.world = world
        self.machine = machine
        self.number = number
        self.place = f"{world.work}/b{number}"
        self.disk = Disk(self.place)
        self.process = None
        self.is_paused = False

    def start(self):
        settings = {**SETTINGS, "node.id": self.number, "log.dirs": f"{self.place}/data",
                    "listeners": f"PLAINTEXT://{self.machine.ip}:{PORT}",
                    "zookeeper.connect": self.world.zookeeper}
        command = [self.world.program, "serve"]
        for key, value in settings.items():
            command += ["--set", f"{key}={value}"]
        with open(f"{self.place}/log", "ab") as log:
            self.process = subprocess.Popen(
                self.machine.command("env", f"LD_PRELOAD={self.world.tools}/soak/disk.so",
                                     f"SOAK_DISK={self.place}", *command), stdout=log, stderr=log)

    def is_alive(self):
        return self.process.poll() is None

    def kill(self):
        self.resume()
        self.process.kill()
        self.process.wait()

    def stop(self):
        self.process.terminate()
        try:
            code = self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            raise Violation(f"broker {self.number} did not stop within {STOP_S} s") from None
        if code:
            raise Violation(f"broker {self.number} ended with {code} at SIGTERM")

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)
        self.is_paused = True

    def resume(self):
        if self.is_paused:
            self.process.send_signal(signal.SIGCONT)
        self.is_paused = False

    def cut_power(self, seed):
        """Kill it, and leave it what its disk would have; return how many bytes were lost."""
        self.kill()
        done = subprocess.run([f"{self.world.tools}/soak/powercut", self.place, str(seed)],
                              capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(done.stderr)
        return int(done.stdout.split()[0])

    def wipe(self):
        """Another disk, which is empty."""
        subprocess.run(["rm", "-rf", f"{self.place}/data", f"{self.place}/shadow"], check=True)
        os.makedirs(f"{self.place}/data")

    def check_end(self):
        """Of a process that has ended by itself: with a reason, or it is a violation."""
        code = self.process.poll()
        if code is not None and code < 0:
            raise Violation(f"broker {self.number} was ended by {signal.Signals(-code).name}: "
                            f"{self.last_words()}")

    def await_end(self):
        """Who has said that it stops does so."""
        try:
            wait_for(lambda: self.is_alive() and self.is_stopping(), "the end of a broker",
                     lambda goes_on: not goes_on, STOP_S)
        except Late:
            raise Violation(f"broker {self.number} does not end: {self.last_words()}") from None

    def is_stopping(self):
        with open(f"{self.place}/log", "rb") as file:
            file.seek(-min(END_BYTES, file.seek(0, os.SEEK_END)), os.SEEK_END)
            said = file.read()
        return said.rfind(b"event=broker.stopping") > said.rfind(b" ready on ")

    def last_words(self):
        with open(f"{self.place}/log", "rb") as file:
            lines = file.read().decode(errors="replace").splitlines()
        return " | ".join(lines[-3:])

    def log_has(self, text):
        with open(f"{self.place}/log", "rb") as file:
            return file.read().count(text.encode())


class World:
    def __init__(self, program, work, seed):
        self.program = os.path.abspath(program)
        self.tools = os.path.dirname(self.program)
        self.work = os.path.abspath(work)
        self.random = random.Random(seed)
        self.healed_s = []  # how long it took until the in-sync sets were whole, each time
        names = [f"b{n + 1}" for n in range(BROKERS)]
        self.network = net.Network([*names, "zk", "cl"])
        *machines, self.zookeeper_machine, self.clients = self.network.machines
        self.zookeeper = self._start_zookeeper()
        self.brokers = [Broker(self, machine, n + 1) for n, machine in enumerate(machines)]
        self.bootstrap = ",".join(f"{m.ip}:{PORT}" for m in machines)

    def _start_zookeeper(self):
        place = f"{self.work}/zookeeper"
        os.makedirs(place)
        tool = str(ROOT / "tests/tools/zookeeper")
        address = f"ZOOKEEPER_HOST={self.zookeeper_machine.ip}"
        subprocess.run(self.zookeeper_machine.command("env", address, tool, "start", place, "2181"),
                       check=True, stdout=subprocess.DEVNULL)
        return f"{self.zookeeper_machine.ip}:2181"

    # ---- asking

    def run(self, *command, timeout=30):
        """Run one of our tools as a client; its exit status and what it printed."""
        try:
            done = subprocess.run(self.clients.command(*command), capture_output=True, text=True,
                                  check=False, timeout=timeout)
        except subprocess.TimeoutExpired:
            return -1, ""
        return done.returncode, done.stdout

    def ask(self, *args):
        """The answer of the first broker that gives one."""
        for broker in self.random.sample(self.brokers, BROKERS):
            if not broker.is_alive() or broker.is_paused:
                continue
            status, text = self.run(self.program, *args, "--json", "--bootstrap-server",
                                    f"{broker.machine.ip}:{PORT}", "--timeout-ms", "1000")
            if status == 0 and text:
                return json.loads(text)
        return None

    def tell(self, *args):
        """Have something done; false if nobody said that it was."""
        status, _ = self.run(self.program, *args, "--bootstrap-server", self.bootstrap,
                             "--timeout-ms", "5000")
        return status == 0

    def partitions(self, topic):
        answer = self.ask("topics", "describe", topic)
        return answer[0]["partitions"] if answer else []

    def is_whole(self, topic, count):
        """Every broker runs, and is in sync in all partitions; who has ended is started again."""
        self.revive()
        found = self.partitions(topic)
        return len(found) == count and all(
            p["leader"] > 0 and sorted(p["isr"]) == sorted(p["replicas"]) and
            len(p["isr"]) == BROKERS for p in found)

    def leader(self, topic):
        """The broker that leads the first partition."""
        number = wait_for(lambda: self.partitions(topic), "a leader",
                          lambda v: len(v) > 0 and v[0]["leader"] > 0)[0]["leader"]
        return self.brokers[number - 1]

    def follower(self, topic):
        leader = self.leader(topic)
        return self.random.choice([b for b in self.brokers if b is not leader])

    def controller(self):
        number = wait_for(lambda: (self.ask("cluster") or {}).get("controller", -1),
                          "a controller", lambda n: n > 0)
        return self.brokers[number - 1]

    def close(self):
        """Nothing of it runs any more."""
        for broker in self.brokers:
            if broker.process:
                broker.kill()
        subprocess.run([str(ROOT / "tests/tools/zookeeper"), "stop", f"{self.work}/zookeeper"],
                       check=False)

    # ---- the end of faults

    def heal(self):
        """Everything works again, and everybody runs."""
        self.network.heal()
        for broker in self.brokers:
            broker.disk.heal()
            broker.resume()
        time.sleep(ENDING_S)
        self.revive()

    def revive(self):
        """Start who has ended by itself, as a supervisor does, or is about to."""
        for broker in self.brokers:
            broker.await_end()
            if not broker.is_alive():
                broker.check_end()
                broker.start()
