#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Record the Kafka frames that pass between a client and a broker.

    proxy.py --listen PORT --broker HOST:PORT --peer "NAME VERSION" --out FRAMES.jsonl

The broker must advertise the proxy's port, so that clients stay behind it after their first
Metadata answer. Every frame becomes one JSON line: {peer, client, api, version, direction, frame},
where `frame` is hex without the 4-byte size and `client` the client id. A response carries none of
these, so it takes them from the request of its connection with the same correlation id. Between
brokers there may be guests, other clients, and `--guests` names them. Frames are forwarded byte
for byte whether they make sense or not; recording never holds up the traffic. `pick.py` turns the
lines into golden files.
"""
import argparse
import asyncio
import json
import re
import struct

from names import API_NAMES
from schemas import header_of

# How Kafka's brokers call themselves; the oldest ControlledShutdown has no client id.
BROKER_CLIENT = re.compile(r"\d+|broker-\d+-fetcher-\d+|")


class Recorder:
    def __init__(self, path, peer, broker_peer, guests):
        self.file = open(path, "a", encoding="ascii")
        self.peer, self.guests = peer, guests
        self.broker_peer = broker_peer

    def write(self, direction, key, version, client, frame):
        is_guest = self.guests and not BROKER_CLIENT.fullmatch(client)
        peer = self.guests if is_guest else self.peer
        line = {
            "peer": peer if direction == "request" else self.broker_peer,
            "asked_by": peer,
            "client": client,
            "api": API_NAMES.get(key, f"key-{key}"),
            "version": version,
            "direction": direction,
            "frame": frame.hex(),
        }
        self.file.write(json.dumps(line) + "\n")
        self.file.flush()


async def read_frame(reader):
    """Return the next frame without its size, or None at the end of the stream."""
    try:
        size = struct.unpack(">i", await reader.readexactly(4))[0]
        return await reader.readexactly(size)
    except (asyncio.IncompleteReadError, ConnectionError):
        return None


async def pump(reader, writer, note):
    while (frame := await read_frame(reader)) is not None:
        note(frame)
        writer.write(struct.pack(">i", len(frame)) + frame)
        await writer.drain()
    writer.close()


async def serve_client(reader, writer, broker, recorder):
    pending = {}

    def note_request(frame):
        key, version, correlation = struct.unpack(">hhi", frame[:8])
        pending[correlation] = key, version, header_of(API_NAMES.get(key), version, frame)[0]
        recorder.write("request", *pending[correlation], frame)

    def note_response(frame):
        correlation = struct.unpack(">i", frame[:4])[0]
        recorder.write("response", *pending.pop(correlation, (-1, -1, "")), frame)

    try:
        up_reader, up_writer = await asyncio.open_connection(*broker)
    except ConnectionError:  # the broker is down: so is its proxy
        writer.close()
        return
    await asyncio.gather(
        pump(reader, up_writer, note_request),
        pump(up_reader, writer, note_response),
        return_exceptions=True,
    )


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--listen", type=int, required=True)
    parser.add_argument("--broker", required=True)
    parser.add_argument("--peer", required=True)
    parser.add_argument("--broker-peer", required=True)
    parser.add_argument("--guests")
    parser.add_argument("--out", required=True)
    args = parser.parse_args()
    host, port = args.broker.rsplit(":", 1)
    recorder = Recorder(args.out, args.peer, args.broker_peer, args.guests)
    server = await asyncio.start_server(
        lambda r, w: serve_client(r, w, (host, int(port)), recorder), "127.0.0.1", args.listen
    )
    print("ready", flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
