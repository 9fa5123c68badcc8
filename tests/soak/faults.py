# SPDX-License-Identifier: Apache-2.0
"""What happens to the brokers while somebody writes.

A fault takes the world and the topic, goes on until its time is up, and yields each time it has
bitten: a broker that led is dead, an in-sync set has lost somebody, bytes are gone. Who only tried
does not yield, and a run without a bite does not count. Whatever is still wrong at the end heals
the world.
"""
import errno
import time

from world import BROKERS, SESSION_MS, wait_for

PARTITIONS = 8
SESSION_S = SESSION_MS / 1000


class Clock:
    def __init__(self, seconds):
        self.end = time.monotonic() + seconds

    def has_time(self):
        return time.monotonic() < self.end

    def sleep(self, seconds):
        """At most until the end."""
        time.sleep(max(0, min(seconds, self.end - time.monotonic())))

    def sees(self, ask):
        """Whether it becomes so before the end."""
        while self.has_time():
            if ask():
                return True
            time.sleep(0.1)
        return False


def restart(world, broker, clock, most=3.0):
    clock.sleep(world.random.uniform(0, most))
    broker.start()


def whole(world, topic):
    """Wait until the in-sync sets are whole, and note how long that took."""
    begin = time.monotonic()
    wait_for(lambda: world.is_whole(topic, PARTITIONS), "whole in-sync sets")
    world.healed_s.append(time.monotonic() - begin)


def in_sync(world, topic):
    """Places in in-sync sets."""
    return sum(len(p["isr"]) for p in world.partitions(topic))


def are_placed(world, topic, count):
    """Every partition has so many replicas, all in sync, and none is on the move."""
    found = world.partitions(topic)
    return len(found) == PARTITIONS and all(
        len(p["replicas"]) == count and len(p["isr"]) == count for p in found)


def leads(world, topic, broker):
    return any(p["leader"] == broker.number for p in world.partitions(topic))


# ---- processes


def none(world, topic, clock):
    """F0: nothing."""
    del world, topic
    clock.sleep(1000)
    yield "nothing happened"


def leader_killed(world, topic, clock):
    """F1: kill -9 of the leader of the first partition, and of the next one."""
    while clock.has_time():
        broker = world.leader(topic)
        broker.kill()
        if clock.sees(lambda b=broker: world.partitions(topic) and not leads(world, topic, b)):
            yield "another leader"
        restart(world, broker, clock)
        clock.sleep(world.random.uniform(1, 3))


def follower_killed(world, topic, clock):
    """F2: kill -9 of a follower."""
    while clock.has_time():
        broker = world.follower(topic)
        broker.kill()
        if clock.sees(lambda: 0 < in_sync(world, topic) < BROKERS * PARTITIONS):
            yield "smaller in-sync sets"
        restart(world, broker, clock)
        clock.sleep(world.random.uniform(1, 3))


def all_killed(world, topic, clock):
    """F3: kill -9 of all three."""
    del topic
    while clock.has_time():
        for broker in world.brokers:
            broker.kill()
        yield "all were dead"
        for broker in world.random.sample(world.brokers, BROKERS):
            restart(world, broker, clock, most=1.0)
        clock.sleep(world.random.uniform(2, 5))


def rolling(world, topic, clock):
    """F4: SIGTERM, one after the other."""
    while clock.has_time():
        for broker in world.brokers:
            if not clock.has_time():
                return
            broker.stop()
            broker.start()
            yield "a clean stop"
            whole(world, topic)


def leader_paused(world, topic, clock):
    """F5: SIGSTOP of the leader, shorter and longer than its session."""
    least = SESSION_S + 2  # the first time; then as it comes
    while clock.has_time():
        broker = world.leader(topic)
        broker.pause()
        seconds = world.random.uniform(least, 2 * SESSION_S)
        least = 0.5
        clock.sleep(seconds)
        if seconds > SESSION_S + 1 and not leads(world, topic, broker):
            yield "another leader"
        broker.resume()
        clock.sleep(world.random.uniform(1, 3))
        whole(world, topic)


# ---- the network


def isolated(world, topic, clock):
    """F6: a leader, a follower or the controller is cut off.

    From the other brokers and ZooKeeper, with or without the clients, or from ZooKeeper alone.
    """
    while clock.has_time():
        pick = world.random.choice([world.leader, world.follower, lambda _: world.controller()])
        broker = pick(topic)
        others = [b.machine for b in world.brokers if b is not broker]
        how = world.random.randrange(3)
        if how < 2:
            world.network.isolate(broker.machine, [world.zookeeper_machine, *others])
        if how == 1:
            world.network.isolate(broker.machine, [world.clients])
        if how == 2:
            world.network.isolate(broker.machine, [world.zookeeper_machine])
        before = broker.log_has("keeper.disconnected")
        clock.sleep(world.random.uniform(SESSION_S, 2 * SESSION_S))
        if broker.log_has("keeper.disconnected") > before or how < 2 and \
                in_sync(world, topic) < BROKERS * PARTITIONS:
            yield "it was alone"
        world.network.heal()
        clock.sleep(world.random.uniform(1, 4))


def partly_cut(world, topic, clock):
    """F7: two brokers do not hear each other, or one of them does not; all see ZooKeeper."""
    while clock.has_time():
        one, other = world.random.sample(world.brokers, 2)
        world.network.cut(one.machine, other.machine)
        if world.random.randrange(2):
            world.network.cut(other.machine, one.machine)
        if clock.sees(lambda: 0 < in_sync(world, topic) < BROKERS * PARTITIONS):
            yield "smaller in-sync sets"
        clock.sleep(world.random.uniform(0, 3))
        world.network.heal()
        clock.sleep(world.random.uniform(1, 3))
        whole(world, topic)


# ---- disks


def power_cut(world, topic, clock):
    """F9: power is cut of one or of all; what was not synced is gone, or some of it."""
    del topic
    for broker in world.brokers:
        broker.disk.set(sync_delay_us=5000)
    while clock.has_time():
        clock.sleep(world.random.uniform(1, 3))
        dead = world.random.choice([world.brokers, [world.random.choice(world.brokers)]])
        lost = sum(broker.cut_power(world.random.randrange(1 << 30)) for broker in dead)
        if lost:
            yield "bytes were lost"
        for broker in dead:
            restart(world, broker, clock, most=1.0)
            broker.disk.set(sync_delay_us=5000)
        clock.sleep(world.random.uniform(1, 3))


def disk_broken(world, topic, clock):
    """F10: writes or syncs fail, or writes are short, for a second or two."""
    while clock.has_time():
        broker = world.random.choice(world.brokers)
        before = broker.disk.bitten()
        broker.disk.set(**world.random.choice([
            {"write_errno": errno.EIO}, {"sync_errno": errno.EIO}, {"short_every": 3}]))
        clock.sleep(world.random.uniform(1, 2))
        broker.disk.heal()
        if broker.disk.bitten() > before:
            yield "calls failed"
        clock.sleep(world.random.uniform(1, 3))
        whole(world, topic)


def disk_full_or_slow(world, topic, clock):
    """F11: a disk is full, or takes up to a second for a sync."""
    while clock.has_time():
        broker = world.random.choice(world.brokers)
        before = broker.disk.bitten()
        is_full = world.random.randrange(2)
        if is_full:
            broker.disk.set(write_errno=errno.ENOSPC)
        else:
            broker.disk.set(sync_delay_us=world.random.randrange(100000, 1000000))
        clock.sleep(world.random.uniform(2, 5))
        if not is_full or broker.disk.bitten() > before:
            yield "it was full" if is_full else "it was slow"
        broker.disk.heal()
        clock.sleep(world.random.uniform(1, 3))
        whole(world, topic)


# ---- fast returns, members, everything


def bounced(world, topic, clock):
    """F14: kill -9 and back at once, within the session; now and then with an empty disk."""
    while clock.has_time():
        whole(world, topic)
        broker = world.random.choice(world.brokers)
        before = broker.log_has("cluster.registered")
        broker.kill()
        if world.random.randrange(3) == 0:
            broker.wipe()
        broker.start()
        if clock.sees(lambda b=broker, n=before: b.log_has("cluster.registered") > n):
            yield "another life within the session"
        clock.sleep(world.random.uniform(0.2, 2))


def moved(world, topic, clock):
    """F17: replicas move to two of the brokers, and back to all three."""
    while clock.has_time():
        for count in (2, BROKERS):
            brokers = world.random.sample([b.number for b in world.brokers], count)
            world.tell("reassign", "start", topic, "--brokers", ",".join(map(str, brokers)),
                       "--replication-factor", str(count))
            if clock.sees(lambda n=count: are_placed(world, topic, n)):
                yield f"{count} replicas"
    wait_for(lambda: world.tell("reassign", "start", topic, "--brokers", "1,2,3",
                                "--replication-factor", str(BROKERS)), "the way back")


def mixed(world, topic, clock):
    """F16: one after the other for some seconds, in any order."""
    faults = [leader_killed, follower_killed, all_killed, rolling, leader_paused, isolated,
              partly_cut, power_cut, disk_broken, disk_full_or_slow, bounced]
    while clock.has_time():
        part = Clock(min(world.random.uniform(5, 10), clock.end - time.monotonic()))
        yield from world.random.choice(faults)(world, topic, part)
        world.heal()


FAULTS = {"F0": none, "F1": leader_killed, "F2": follower_killed, "F3": all_killed, "F4": rolling,
          "F5": leader_paused, "F6": isolated, "F7": partly_cut, "F9": power_cut,
          "F10": disk_broken, "F11": disk_full_or_slow, "F14": bounced, "F16": mixed,
          "F17": moved}
