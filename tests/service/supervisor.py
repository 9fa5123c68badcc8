#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stands in for systemd.

    supervisor.py listen SOCKET     prints each word that comes, fields joined by "; ", until killed
    supervisor.py hold ADDRESS S    waits for a broker with this http.address to recover, and
                                    makes it stand still for S seconds then
    supervisor.py lines FILE        every line is a JSON object with time, level, module and event
    supervisor.py forge BOOTSTRAP   a client whose name tries to write a line of the log
"""
import json
import os
import re
import signal
import socket
import struct
import sys
import time
import urllib.error
import urllib.request

PATIENCE_S = 30
FORGED = 'x"} \n{"level":"error","event":"forged"}'


def listen(path):
    words = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    words.bind("\0" + path[1:] if path.startswith("@") else path)
    print("listening", flush=True)
    while True:
        print(words.recv(4096).decode().replace("\n", "; "), flush=True)


def status(url):
    try:
        return urllib.request.urlopen(url).status
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return None


def process_with(argument):
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                if argument.encode() in f.read().split(b"\0"):
                    return int(pid)
        except OSError:
            continue
    sys.exit(f"no process has the argument {argument}")


def hold(address, seconds):
    print("watching", flush=True)
    deadline = time.monotonic() + PATIENCE_S
    while status(f"http://{address}/readyz") != 503:
        if time.monotonic() > deadline:
            sys.exit("it was never seen to recover")
    pid = process_with(f"http.address={address}")
    os.kill(pid, signal.SIGSTOP)
    time.sleep(float(seconds))
    os.kill(pid, signal.SIGCONT)


def lines(path):
    with open(path, encoding="utf-8") as f:
        for line in f:
            event = json.loads(line)
            assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", event["time"]), line
            assert event["level"] in ("error", "warn", "info", "debug"), line
            assert event["event"].split(".")[0] == event["module"], line
            assert event["event"] != "forged", line
            print(event["event"], event.get("client", ""))


def forge(bootstrap):
    host, port = bootstrap.split(":")
    name = FORGED.encode()
    message = struct.pack(f">hhih{len(name)}s", 32000, 0, 1, len(name), name)
    with socket.create_connection((host, int(port)), PATIENCE_S) as s:
        s.sendall(struct.pack(">i", len(message)) + message)
        assert not s.recv(100), "it was answered"


def main():
    commands = {"listen": listen, "hold": hold, "lines": lines, "forge": forge}
    commands[sys.argv[1]](*sys.argv[2:])


main()
