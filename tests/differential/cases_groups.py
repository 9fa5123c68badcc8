# SPDX-License-Identifier: Apache-2.0
"""Groups of the classic protocol: what members may do in which state, offsets, and administration.

One connection asks one thing after the other, so no group here has two members: the second would
wait for the first.
"""
import struct

from cases import MISSING, Seen

SESSION_MS = 30_000
TOPIC = "data"


def subscription(*topics):
    """Return a consumer's metadata of version 0."""
    names = b"".join(struct.pack(">h", len(name)) + name.encode() for name in topics)
    return struct.pack(">hi", 0, len(topics)) + names + struct.pack(">i", -1)


def join(group, member="", protocols=None, kind="consumer", **values):
    protocols = [("range", subscription(TOPIC))] if protocols is None else protocols
    return {"group_id": group, "session_timeout_ms": SESSION_MS, "rebalance_timeout_ms": 60_000,
            "member_id": member, "group_instance_id": None, "protocol_type": kind, "reason": "why",
            "protocols": [{"name": name, "metadata": data} for name, data in protocols], **values}


def sync(group, member, generation=1, assignment=b"mine", **values):
    return {"group_id": group, "generation_id": generation, "member_id": member,
            "group_instance_id": None, "protocol_type": "consumer", "protocol_name": "range",
            "assignments": [{"member_id": member, "assignment": assignment}], **values}


def beat(group, member, generation=1, **values):
    return {"group_id": group, "generation_id": generation, "member_id": member,
            "group_instance_id": None, **values}


def leave(group, *members):
    """Return a request to leave; a member is an id, or an id and an instance."""
    pairs = [member if isinstance(member, tuple) else (member, None) for member in members]
    return {"group_id": group, "member_id": pairs[0][0] if pairs else "", "members": [
        {"member_id": member, "group_instance_id": instance, "reason": "why"}
        for member, instance in pairs]}


def commit(group, *parts, member="", generation=-1, **values):
    """Return a commit; a part is (topic, partition, offset[, metadata])."""
    topics = {}
    for topic, partition, offset, *rest in parts:
        topics.setdefault(topic, []).append({
            "partition_index": partition, "committed_offset": offset,
            "committed_leader_epoch": -1, "commit_timestamp": -1,
            "committed_metadata": rest[0] if rest else "note"})
    return {"group_id": group, "generation_id": generation, "member_id": member,
            "group_instance_id": None, "retention_time_ms": -1, **values, "topics": [
                {"name": name, "partitions": found} for name, found in topics.items()]}


def fetch(*groups, topics=None, require_stable=False):
    """Return a request for the offsets of groups; the first one in versions up to 7."""
    asked = topics and [{"name": topic, "partition_indexes": list(partitions)}
                        for topic, partitions in topics]
    return {"group_id": groups[0] if groups else "", "topics": asked, "groups": [
        {"group_id": group, "topics": asked, "member_id": None, "member_epoch": -1}
        for group in groups], "require_stable": require_stable}


def saving(name):
    def save(peer, answer):
        peer.seen[f"member_id {name}"] = answer["member_id"]
    return save


def me(name):
    return Seen(f"member_id {name}")


def join_alone(cases, group, version):
    """Make a group with one member, which has not synced."""
    cases.add(f"{group} joins", "JoinGroup", version, join(group), save=saving(group))
    if version >= 4:
        cases.add(f"{group} joins with its id", "JoinGroup", version, join(group, me(group)))


def add_join(cases):
    api, newest = "JoinGroup", cases.newest("JoinGroup")
    cases.each("no group", api, join(""))
    cases.each("unknown member", api, join("nobody", "nobody-1"))
    for name, values in {
            "no protocols": join("bad", protocols=[]), "no type": join("bad", kind=""),
            "short session": join("bad", session_timeout_ms=5999),
            "long session": join("bad", session_timeout_ms=1_800_001),
            "negative session": join("bad", session_timeout_ms=-1)}.items():
        cases.add(name, api, newest, values)
        cases.add(name, api, 3, values)


def add_life(cases):
    """A member's life in each version of JoinGroup, with what is wrong in each state."""
    for version in cases.ranges["JoinGroup"]:
        group = f"life{version}"

        def newest(api, below=9):
            return min(cases.newest(api), below if version < 5 else 99)

        def add(name, api, values, **options):
            cases.add(f"{group} {name}", api, newest(api, 2), values, **options)

        join_alone(cases, group, version)
        add("is described before it syncs", "DescribeGroups", {"groups": [group]})
        add("beats before it syncs", "Heartbeat", beat(group, me(group)))
        add("commits before it syncs", "OffsetCommit",
            commit(group, (TOPIC, 0, 1), member=me(group), generation=1))
        add("syncs in another generation", "SyncGroup", sync(group, me(group), 2))
        add("is not the one who syncs", "SyncGroup", sync(group, "nobody"))
        add("syncs", "SyncGroup", sync(group, me(group)))
        add("syncs again", "SyncGroup", sync(group, me(group), assignment=b"other"))
        add("is described", "DescribeGroups", {"groups": [group],
                                               "include_authorized_operations": True})
        add("beats", "Heartbeat", beat(group, me(group)))
        add("beats in another generation", "Heartbeat", beat(group, me(group), 2))
        add("is not the one who beats", "Heartbeat", beat(group, "nobody"))
        add("commits", "OffsetCommit",
            commit(group, (TOPIC, 0, 5), (TOPIC, 1, 6), member=me(group), generation=1))
        add("commits in another generation", "OffsetCommit",
            commit(group, (TOPIC, 0, 9), member=me(group), generation=2))
        add("is not the one who commits", "OffsetCommit",
            commit(group, (TOPIC, 0, 9), member="nobody", generation=1))
        add("is no member and commits", "OffsetCommit", commit(group, (TOPIC, 0, 9)))
        add("offsets", "OffsetFetch", fetch(group, topics=[(TOPIC, (0, 1, 2))]))
        add("is deleted too early", "DeleteGroups", {"groups_names": [group]})
        cases.add(f"{group} forgets what it reads", "OffsetDelete", 0, {
            "group_id": group, "topics": [{"name": TOPIC, "partitions": [{"partition_index": 0}]}]})
        cases.add(f"{group} joins again", "JoinGroup", version, join(group, me(group)))
        add("syncs again later", "SyncGroup", sync(group, me(group), 2))
        add("is not the one who leaves", "LeaveGroup", leave(group, "nobody"))
        add("leaves", "LeaveGroup", leave(group, me(group)))
        add("leaves again", "LeaveGroup", leave(group, me(group)))
        add("beats too late", "Heartbeat", beat(group, me(group), 2))
        add("syncs too late", "SyncGroup", sync(group, me(group), 2))
        add("is described when it is empty", "DescribeGroups", {"groups": [group]})
        add("commits too late", "OffsetCommit",
            commit(group, (TOPIC, 0, 9), member=me(group), generation=2))
        add("offsets in the end", "OffsetFetch", fetch(group))


def add_members(cases):
    newest = cases.newest("JoinGroup")
    join_alone(cases, "kinds", newest)
    cases.add("sync of another type", "SyncGroup", 5, sync("kinds", me("kinds"), protocol_type="x"))
    cases.add("sync of another protocol", "SyncGroup", 5,
              sync("kinds", me("kinds"), protocol_name="x"))
    cases.add("kinds syncs", "SyncGroup", 5, sync("kinds", me("kinds")))
    cases.add("another type", "JoinGroup", 3, join("kinds", kind="connect"))
    cases.add("another protocol", "JoinGroup", 3, join("kinds", protocols=[("other", b"")]))
    cases.add("leave nobody", "LeaveGroup", 3, leave("kinds"))
    cases.add("leave twice", "LeaveGroup", 4, leave("kinds", me("kinds"), me("kinds"), "nobody"))
    for version in (3, newest):
        group = f"choice{version}"
        chosen = [("one", b"\1"), ("two", b"\2")]
        cases.add(f"{group} joins", "JoinGroup", version, join(group, protocols=chosen, kind="x"),
                  save=saving(group))
        if version > 3:
            cases.add(f"{group} joins with its id", "JoinGroup", version,
                      join(group, me(group), chosen, "x"))
        cases.add(f"{group} syncs", "SyncGroup", 3, sync(group, me(group), assignment=b""))
        cases.add(f"{group} is described", "DescribeGroups", 5, {"groups": [group]})
        cases.add(f"{group} is not of consumers", "OffsetDelete", 0, {
            "group_id": group, "topics": [{"name": TOPIC, "partitions": [{"partition_index": 0}]}]})


def add_static(cases):
    for version in (5, cases.newest("JoinGroup")):
        group, name = f"static{version}", f"static{version} before"
        mine = {"group_instance_id": "i"}
        cases.add(f"{group} joins", "JoinGroup", version, join(group, **mine), save=saving(name))
        cases.add(f"{group} syncs", "SyncGroup", 5, sync(group, me(name), **mine))
        cases.add(f"{group} comes back", "JoinGroup", version, join(group, **mine),
                  save=saving(group))
        cases.add(f"{group} beats as before", "Heartbeat", 4, beat(group, me(name), **mine))
        cases.add(f"{group} beats", "Heartbeat", 4, beat(group, me(group), **mine))
        cases.add(f"{group} syncs as before", "SyncGroup", 5, sync(group, me(name), **mine))
        cases.add(f"{group} joins as before", "JoinGroup", version, join(group, me(name), **mine))
        cases.add(f"{group} commits as before", "OffsetCommit", 8, commit(
            group, (TOPIC, 0, 1), member=me(name), generation=1, **mine))
        cases.add(f"{group} commits", "OffsetCommit", 8, commit(
            group, (TOPIC, 0, 1), member=me(group), generation=1, **mine))
        cases.add(f"{group} is somebody else", "Heartbeat", 4,
                  beat(group, me(group), group_instance_id="k"))
        cases.add(f"{group} is described", "DescribeGroups", 5, {"groups": [group]})
        cases.add(f"{group} leaves as before", "LeaveGroup", 4, leave(group, (me(name), "i")))
        cases.add(f"{group} leaves as somebody else", "LeaveGroup", 4, leave(group, ("", "k")))
        cases.add(f"{group} leaves", "LeaveGroup", 4, leave(group, ("", "i")))


def add_offsets(cases):
    api = "OffsetCommit"
    versions = [v for v in cases.ranges[api] if v >= 2]
    cases.each("simple", api, commit("simple", (TOPIC, 0, 5), (TOPIC, 9, 1), (MISSING, 0, 1)),
               versions)
    cases.each("without a group", api, commit("", (TOPIC, 0, 5)), versions)
    cases.each("of a generation that never was", api,
               commit("ghost", (TOPIC, 0, 5), member="m", generation=1), versions)
    cases.each("of a member that never was", api, commit("ghost", (TOPIC, 0, 5), member="m"),
               versions)
    newest = versions[-1]
    for name, part in {"long note": (TOPIC, 0, 5, "x" * 4096), "no note": (TOPIC, 1, 5, None),
                       "too long a note": (TOPIC, 0, 5, "x" * 4097),
                       "negative offset": (TOPIC, 2, -7)}.items():
        cases.add(name, api, newest, commit("notes", part))
    cases.add("nothing", api, newest, commit("nothing"))
    cases.each("retention", api, commit("kept", (TOPIC, 0, 5), retention_time_ms=1), range(2, 5))
    api = "OffsetFetch"
    cases.each("some", api, fetch("simple", topics=[(TOPIC, (0, 1, 9)), (MISSING, (0,))]))
    cases.each("all", api, fetch("simple"), [v for v in cases.ranges[api] if v >= 2])
    cases.each("unknown group", api, fetch("unknown", topics=[(TOPIC, (0,))]))
    cases.each("groups", api, fetch("simple", "notes", "unknown", ""),
               [v for v in cases.ranges[api] if v >= 8])
    cases.add("notes", api, 7, fetch("notes", require_stable=True))
    cases.add("no groups", api, 8, fetch())


def add_administration(cases):
    for states, types in ((), ()), (("Empty",), ()), (("stable", "EMPTY"), ()), (
            ("Nonsense",), ()), ((), ("classic",)), ((), ("CLASSIC",)), ((), ("consumer",)), (
            ("Stable",), ("classic", "consumer")), ((), ("nonsense",)):
        for version in cases.ranges["ListGroups"]:
            if (version >= 4 or not states) and (version >= 5 or not types):
                cases.add(f"{'+'.join(states)} {'+'.join(types)}", "ListGroups", version,
                          {"states_filter": list(states), "types_filter": list(types)})
    cases.each("some", "DescribeGroups", {"groups": ["simple", "unknown", "", "simple"],
                                          "include_authorized_operations": True})
    cases.add("none", "DescribeGroups", 5, {"groups": []})
    cases.each("some", "DeleteGroups", {"groups_names": ["unknown", "", "choice3"]})
    cases.add("none", "DeleteGroups", 2, {"groups_names": []})
    cases.add("forget some", "OffsetDelete", 0, {"group_id": "simple", "topics": [
        {"name": TOPIC, "partitions": [{"partition_index": 0}, {"partition_index": 9}]},
        {"name": MISSING, "partitions": [{"partition_index": 0}]}]})
    cases.add("forget of nobody", "OffsetDelete", 0, {"group_id": "unknown", "topics": [
        {"name": TOPIC, "partitions": [{"partition_index": 0}]}]})
    cases.add("forgotten", "OffsetFetch", 7, fetch("simple"))
    cases.each("twice: delete", "DeleteGroups", lambda v: {"groups_names": [f"life{v}", f"life{v}"]})
    cases.add("deleted", "DescribeGroups", 5, {"groups": ["life0"]})
    cases.add("offsets of deleted", "OffsetFetch", 7, fetch("life0"))
    cases.add("commit after deletion", "OffsetCommit", 8, commit("life0", (TOPIC, 0, 1)))
    cases.add("described after deletion", "DescribeGroups", 5, {"groups": ["life0"]})


def add_groups(cases):
    add_join(cases)
    add_life(cases)
    add_members(cases)
    add_static(cases)
    add_offsets(cases)
    add_administration(cases)
