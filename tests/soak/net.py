# SPDX-License-Identifier: Apache-2.0
"""Machines of a network of their own: a namespace each, on one bridge.

The whole test runs in namespaces (`enter`): when it ends, however it ends, they are gone with all
that ran in them. Needs root, or a system that lets anybody make namespaces.

A cut is silent and has a direction: what one machine sends to another goes to an address that
nobody has. Established connections are cut as well, nobody is told, and nothing is refused.
"""
import os
import subprocess
import sys

INSIDE = "SOAK_INSIDE"
NETWORK = "10.77.0."
NOBODY = "02:77:00:00:ff:ff"


def enter():
    """Run this program again inside; returns there."""
    if os.environ.get(INSIDE):
        return
    unshare = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if os.geteuid() != 0:
        unshare += ["--user", "--map-root-user"]
    os.environ[INSIDE] = "1"
    os.execvp(unshare[0], [*unshare, sys.executable, *sys.argv])


def ip(*args):
    done = subprocess.run(["ip", *args], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"ip {' '.join(args)}: {done.stderr.strip()}")


class Machine:
    def __init__(self, name, number):
        self.name = name
        self.ip = f"{NETWORK}{number}"
        self.mac = f"02:77:00:00:00:{number:02x}"

    def command(self, *args):
        """The words that run a program on this machine; it keeps its process id."""
        return ["ip", "netns", "exec", self.name, *args]


class Network:
    def __init__(self, names):
        os.makedirs("/run/netns", exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "netns", "/run/netns"], check=True)
        ip("link", "add", "br0", "type", "bridge")
        ip("link", "set", "br0", "up")
        self.machines = [Machine(name, i + 1) for i, name in enumerate(names)]
        self.cuts = set()
        for machine in self.machines:
            self._add(machine)
        for machine in self.machines:
            for other in self.machines:
                if other is not machine:
                    self._point(machine, other, other.mac)

    @staticmethod
    def _add(machine):
        ip("netns", "add", machine.name)
        ip("link", "add", f"v-{machine.name}", "type", "veth", "peer", "name", "eth0", "netns",
           machine.name, "address", machine.mac)
        ip("link", "set", f"v-{machine.name}", "master", "br0", "up")
        ip("-n", machine.name, "address", "add", f"{machine.ip}/24", "dev", "eth0")
        ip("-n", machine.name, "link", "set", "eth0", "up")
        ip("-n", machine.name, "link", "set", "lo", "up")

    @staticmethod
    def _point(machine, other, mac):
        ip("-n", machine.name, "neigh", "replace", other.ip, "lladdr", mac, "dev", "eth0", "nud",
           "permanent")

    def cut(self, sender, receiver):
        """What `sender` sends to `receiver` is lost from now on."""
        self._point(sender, receiver, NOBODY)
        self.cuts.add((sender, receiver))

    def isolate(self, machine, others):
        for other in others:
            self.cut(machine, other)
            self.cut(other, machine)

    def heal(self):
        for sender, receiver in self.cuts:
            self._point(sender, receiver, receiver.mac)
        self.cuts.clear()
