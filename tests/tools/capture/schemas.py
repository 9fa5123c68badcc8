# SPDX-License-Identifier: Apache-2.0
"""Layouts of the captured APIs in a shorthand, and an encoder and a decoder that run them.

This is a second, independent description of the wire, so that golden frames are not made and
checked by one and the same table. One string per message, fields in wire order:

    Name(range):type      range `n`, `n+`, `n-m` or nothing for all versions; `n+,#t` tagged with t
    i8 i16 i32 i64 bool uuid   fixed size
    s  b  r               string, bytes, records
    [fields or type]      array, {fields} struct
    type?  type?n+        nullable, from version n on

`encode` takes a dict of values and uses defaults for what it lacks; `decode` returns a dict and
refuses bytes that are left over.
"""
import re
import struct

FLEXIBLE_FROM = {
    "Produce": 9, "Fetch": 12, "ListOffsets": 6, "Metadata": 9, "FindCoordinator": 3,
    "ApiVersions": 3, "CreateTopics": 5, "DeleteTopics": 4, "DeleteRecords": 2,
    "InitProducerId": 2, "OffsetForLeaderEpoch": 4, "DescribeConfigs": 4, "AlterConfigs": 2,
    "DescribeLogDirs": 2, "CreatePartitions": 2, "IncrementalAlterConfigs": 1,
    "DescribeCluster": 0, "DescribeProducers": 0, "DescribeTopicPartitions": 0,
    "OffsetCommit": 8, "OffsetFetch": 6, "JoinGroup": 6, "Heartbeat": 4, "LeaveGroup": 4,
    "SyncGroup": 4, "DescribeGroups": 5, "ListGroups": 3, "DeleteGroups": 2, "OffsetDelete": 99,
    "LeaderAndIsr": 4, "StopReplica": 2, "UpdateMetadata": 6, "ControlledShutdown": 3,
    "ElectLeaders": 2, "AlterPartitionReassignments": 0, "ListPartitionReassignments": 0,
    "AlterPartition": 0, "AllocateProducerIds": 0,
}

REQUESTS = {
    "Produce": """transactional_id(3+):s? acks:i16 timeout_ms:i32 topics:[name(0-12):s
        topic_id(13+):uuid partitions:[index:i32 records:r?]]""",
    "Fetch": """cluster_id(12+,#0):s? replica_id(0-14):i32
        replica_state(15+,#1):{replica_id:i32 replica_epoch:i64} max_wait_ms:i32 min_bytes:i32
        max_bytes(3+):i32 isolation_level(4+):i8 session_id(7+):i32 session_epoch(7+):i32
        topics:[topic(0-12):s topic_id(13+):uuid partitions:[partition:i32
        current_leader_epoch(9+):i32 fetch_offset:i64 last_fetched_epoch(12+):i32
        log_start_offset(5+):i64 partition_max_bytes:i32 replica_directory_id(17+,#0):uuid
        high_watermark(18+,#1):i64 durable_offset(12+,#9092):i64]] forgotten(7+):[topic(0-12):s topic_id(13+):uuid
        partitions:[i32]] rack_id(11+):s""",
    "ListOffsets": """replica_id:i32 isolation_level(2+):i8 topics:[name:s partitions:[
        partition_index:i32 current_leader_epoch(4+):i32 timestamp:i64 max_num_offsets(0):i32]]
        timeout_ms(10+):i32""",
    "Metadata": """topics:[topic_id(10+):uuid name:s?10+]?1+ allow_auto_topic_creation(4+):bool
        include_cluster_authorized_operations(8-10):bool
        include_topic_authorized_operations(8+):bool""",
    "FindCoordinator": "key(0-3):s key_type(1+):i8 coordinator_keys(4+):[s]",
    "ApiVersions": """client_software_name(3+):s client_software_version(3+):s
        cluster_id(5+):s? node_id(5+):i32""",
    "CreateTopics": """topics:[name:s num_partitions:i32 replication_factor:i16
        assignments:[partition_index:i32 broker_ids:[i32]] configs:[name:s value:s?]]
        timeout_ms:i32 validate_only(1+):bool""",
    "DeleteTopics": """topics(6+):[name:s? topic_id:uuid] topic_names(0-5):[s] timeout_ms:i32""",
    "DeleteRecords": "topics:[name:s partitions:[partition_index:i32 offset:i64]] timeout_ms:i32",
    "InitProducerId": """transactional_id:s? transaction_timeout_ms:i32 producer_id(3+):i64
        producer_epoch(3+):i16 enable_2pc(6+):bool keep_prepared_txn(6+):bool""",
    "OffsetForLeaderEpoch": """replica_id(3+):i32 topics:[topic:s partitions:[partition:i32
        current_leader_epoch(2+):i32 leader_epoch:i32]]""",
    "DescribeConfigs": """resources:[resource_type:i8 resource_name:s configuration_keys:[s]?]
        include_synonyms(1+):bool include_documentation(3+):bool""",
    "AlterConfigs": """resources:[resource_type:i8 resource_name:s configs:[name:s value:s?]]
        validate_only:bool""",
    "DescribeLogDirs": "topics:[topic:s partitions:[i32]]?",
    "CreatePartitions": """topics:[name:s count:i32 assignments:[broker_ids:[i32]]?]
        timeout_ms:i32 validate_only:bool""",
    "IncrementalAlterConfigs": """resources:[resource_type:i8 resource_name:s configs:[name:s
        config_operation:i8 value:s?]] validate_only:bool""",
    "DescribeCluster": """include_cluster_authorized_operations:bool endpoint_type(1+):i8
        include_fenced_brokers(2+):bool""",
    "DescribeProducers": "topics:[name:s partition_indexes:[i32]]",
    "DescribeTopicPartitions": """topics:[name:s] response_partition_limit:i32
        cursor:{topic_name:s partition_index:i32}?""",
    "OffsetCommit": """group_id:s generation_id(1+):i32 member_id(1+):s
        group_instance_id(7+):s?7+ retention_time_ms(2-4):i64 topics:[name(0-9):s
        topic_id(10+):uuid partitions:[partition_index:i32 committed_offset:i64
        committed_leader_epoch(6+):i32 commit_timestamp(1):i64 committed_metadata:s?]]""",
    "OffsetFetch": """group_id(0-7):s topics(0-7):[name:s partition_indexes:[i32]]?2+
        groups(8+):[group_id:s member_id(9+):s?9+ member_epoch(9+):i32 topics:[name(8-9):s
        topic_id(10+):uuid partition_indexes:[i32]]?8+] require_stable(7+):bool""",
    "JoinGroup": """group_id:s session_timeout_ms:i32 rebalance_timeout_ms(1+):i32 member_id:s
        group_instance_id(5+):s?5+ protocol_type:s protocols:[name:s metadata:b]
        reason(8+):s?8+""",
    "Heartbeat": "group_id:s generation_id:i32 member_id:s group_instance_id(3+):s?3+",
    "LeaveGroup": """group_id:s member_id(0-2):s members(3+):[member_id:s group_instance_id:s?3+
        reason(5+):s?5+]""",
    "SyncGroup": """group_id:s generation_id:i32 member_id:s group_instance_id(3+):s?3+
        protocol_type(5+):s?5+ protocol_name(5+):s?5+ assignments:[member_id:s assignment:b]""",
    "DescribeGroups": "groups:[s] include_authorized_operations(3+):bool",
    "ListGroups": "states_filter(4+):[s] types_filter(5+):[s]",
    "DeleteGroups": "groups_names:[s]",
    "OffsetDelete": "group_id:s topics:[name:s partitions:[partition_index:i32]]",
    "LeaderAndIsr": """controller_id:i32 is_kraft_controller(7+):bool controller_epoch:i32
        broker_epoch(2+):i64 type(5+):i8 ungrouped_partition_states(0-1):[topic_name:s
        partition_index:i32 controller_epoch:i32 leader:i32 leader_epoch:i32 isr:[i32]
        partition_epoch:i32 replicas:[i32] is_new(1):bool] topic_states(2+):[topic_name:s
        topic_id(5+):uuid partition_states:[partition_index:i32 controller_epoch:i32 leader:i32
        leader_epoch:i32 isr:[i32] partition_epoch:i32 replicas:[i32] adding_replicas(3+):[i32]
        removing_replicas(3+):[i32] is_new:bool leader_recovery_state(6+):i8]]
        live_leaders:[broker_id:i32 host_name:s port:i32]""",
    "StopReplica": """controller_id:i32 is_kraft_controller(4+):bool controller_epoch:i32
        broker_epoch(1+):i64 delete_partitions(0-2):bool
        ungrouped_partitions(0):[topic_name:s partition_index:i32]
        topics(1-2):[name:s partition_indexes:[i32]] topic_states(3+):[topic_name:s
        partition_states:[partition_index:i32 leader_epoch:i32 delete_partition:bool]]""",
    "UpdateMetadata": """controller_id:i32 is_kraft_controller(8+):bool type(8+,#0):i8
        controller_epoch:i32 broker_epoch(5+):i64 ungrouped_partition_states(0-4):[topic_name:s
        partition_index:i32 controller_epoch:i32 leader:i32 leader_epoch:i32 isr:[i32]
        zk_version:i32 replicas:[i32] offline_replicas(4):[i32]] topic_states(5+):[topic_name:s
        topic_id(7+):uuid partition_states:[partition_index:i32 controller_epoch:i32 leader:i32
        leader_epoch:i32 isr:[i32] zk_version:i32 replicas:[i32] offline_replicas:[i32]]]
        live_brokers:[id:i32 v0_host(0):s v0_port(0):i32 endpoints(1+):[port:i32 host:s
        listener(3+):s security_protocol:i16] rack(2+):s?]""",
    "ControlledShutdown": "broker_id:i32 broker_epoch(2+):i64",
    "ElectLeaders": """election_type(1+):i8 topic_partitions:[topic:s partitions:[i32]]?
        timeout_ms:i32""",
    "AlterPartitionReassignments": """timeout_ms:i32 allow_replication_factor_change(1+):bool
        topics:[name:s partitions:[partition_index:i32 replicas:[i32]?]]""",
    "ListPartitionReassignments": """timeout_ms:i32
        topics:[name:s partition_indexes:[i32]]?""",
    "AlterPartition": """broker_id:i32 broker_epoch:i64 topics:[topic_name(0-1):s
        topic_id(2+):uuid partitions:[partition_index:i32 leader_epoch:i32 new_isr(0-2):[i32]
        new_isr_with_epochs(3+):[broker_id:i32 broker_epoch:i64] leader_recovery_state(1+):i8
        partition_epoch:i32]]""",
    "AllocateProducerIds": "broker_id:i32 broker_epoch:i64",
}

RESPONSES = {
    "Produce": """responses:[name(0-12):s topic_id(13+):uuid partitions:[index:i32
        error_code:i16 base_offset:i64 log_append_time_ms(2+):i64 log_start_offset(5+):i64
        record_errors(8+):[batch_index:i32 message:s?] error_message(8+):s?
        current_leader(10+,#0):{leader_id:i32 leader_epoch:i32}]] throttle_time_ms(1+):i32
        node_endpoints(10+,#0):[node_id:i32 host:s port:i32 rack:s?]""",
    "Fetch": """throttle_time_ms(1+):i32 error_code(7+):i16 session_id(7+):i32
        responses:[topic(0-12):s topic_id(13+):uuid partitions:[partition_index:i32
        error_code:i16 high_watermark:i64 last_stable_offset(4+):i64 log_start_offset(5+):i64
        diverging_epoch(12+,#0):{epoch:i32 end_offset:i64}
        current_leader(12+,#1):{leader_id:i32 leader_epoch:i32}
        snapshot_id(12+,#2):{end_offset:i64 epoch:i32}
        aborted_transactions(4+):[producer_id:i64 first_offset:i64]?
        preferred_read_replica(11+):i32 records:r?]]
        node_endpoints(16+,#0):[node_id:i32 host:s port:i32 rack:s?]""",
    "ListOffsets": """throttle_time_ms(2+):i32 topics:[name:s partitions:[partition_index:i32
        error_code:i16 old_style_offsets(0):[i64] timestamp(1+):i64 offset(1+):i64
        leader_epoch(4+):i32]]""",
    "Metadata": """throttle_time_ms(3+):i32 brokers:[node_id:i32 host:s port:i32 rack(1+):s?]
        cluster_id(2+):s? controller_id(1+):i32 topics:[error_code:i16 name:s?12+
        topic_id(10+):uuid is_internal(1+):bool partitions:[error_code:i16 partition_index:i32
        leader_id:i32 leader_epoch(7+):i32 replica_nodes:[i32] isr_nodes:[i32]
        offline_replicas(5+):[i32]] topic_authorized_operations(8+):i32]
        cluster_authorized_operations(8-10):i32 error_code(13+):i16""",
    "FindCoordinator": """throttle_time_ms(1+):i32 error_code(0-3):i16 error_message(1-3):s?
        node_id(0-3):i32 host(0-3):s port(0-3):i32 coordinators(4+):[key:s node_id:i32 host:s
        port:i32 error_code:i16 error_message:s?]""",
    "ApiVersions": """error_code:i16 api_keys:[api_key:i16 min_version:i16 max_version:i16]
        throttle_time_ms(1+):i32
        supported_features(3+,#0):[name:s min_version:i16 max_version:i16]
        finalized_features_epoch(3+,#1):i64
        finalized_features(3+,#2):[name:s max_version_level:i16 min_version_level:i16]
        zk_migration_ready(3+,#3):bool""",
    "CreateTopics": """throttle_time_ms(2+):i32 topics:[name:s topic_id(7+):uuid error_code:i16
        error_message(1+):s? topic_config_error_code(5+,#0):i16 num_partitions(5+):i32
        replication_factor(5+):i16 configs(5+):[name:s value:s? read_only:bool config_source:i8
        is_sensitive:bool]?]""",
    "DeleteTopics": """throttle_time_ms(1+):i32 responses:[name:s?6+ topic_id(6+):uuid
        error_code:i16 error_message(5+):s?]""",
    "DeleteRecords": """throttle_time_ms:i32 topics:[name:s partitions:[partition_index:i32
        low_watermark:i64 error_code:i16]]""",
    "InitProducerId": """throttle_time_ms:i32 error_code:i16 producer_id:i64 producer_epoch:i16
        ongoing_txn_producer_id(6+):i64 ongoing_txn_producer_epoch(6+):i16""",
    "OffsetForLeaderEpoch": """throttle_time_ms(2+):i32 topics:[topic:s partitions:[
        error_code:i16 partition:i32 leader_epoch(1+):i32 end_offset:i64]]""",
    "DescribeConfigs": """throttle_time_ms:i32 results:[error_code:i16 error_message:s?
        resource_type:i8 resource_name:s configs:[name:s value:s? read_only:bool
        config_source(1+):i8 is_default(0):bool is_sensitive:bool synonyms(1+):[name:s value:s?
        source:i8] config_type(3+):i8 documentation(3+):s?]]""",
    "AlterConfigs": """throttle_time_ms:i32 responses:[error_code:i16 error_message:s?
        resource_type:i8 resource_name:s]""",
    "DescribeLogDirs": """throttle_time_ms:i32 error_code(3+):i16 results:[error_code:i16
        log_dir:s topics:[name:s partitions:[partition_index:i32 partition_size:i64
        offset_lag:i64 is_future_key:bool]] total_bytes(4+):i64 usable_bytes(4+):i64
        is_cordoned(5+):bool]""",
    "CreatePartitions": """throttle_time_ms:i32 results:[name:s error_code:i16
        error_message:s?]""",
    "IncrementalAlterConfigs": """throttle_time_ms:i32 responses:[error_code:i16
        error_message:s? resource_type:i8 resource_name:s]""",
    "DescribeCluster": """throttle_time_ms:i32 error_code:i16 error_message:s?
        endpoint_type(1+):i8 cluster_id:s controller_id:i32 brokers:[broker_id:i32 host:s
        port:i32 rack:s? is_fenced(2+):bool] cluster_authorized_operations:i32""",
    "DescribeProducers": """throttle_time_ms:i32 topics:[name:s partitions:[partition_index:i32
        error_code:i16 error_message:s? active_producers:[producer_id:i64 producer_epoch:i32
        last_sequence:i32 last_timestamp:i64 coordinator_epoch:i32
        current_txn_start_offset:i64]]]""",
    "DescribeTopicPartitions": """throttle_time_ms:i32 topics:[error_code:i16 name:s?
        topic_id:uuid is_internal:bool partitions:[error_code:i16 partition_index:i32
        leader_id:i32 leader_epoch:i32 replica_nodes:[i32] isr_nodes:[i32]
        eligible_leader_replicas:[i32]? last_known_elr:[i32]? offline_replicas:[i32]]
        topic_authorized_operations:i32] next_cursor:{topic_name:s partition_index:i32}?""",
    "OffsetCommit": """throttle_time_ms(3+):i32 topics:[name(0-9):s topic_id(10+):uuid
        partitions:[partition_index:i32 error_code:i16]]""",
    "OffsetFetch": """throttle_time_ms(3+):i32 topics(0-7):[name:s partitions:[
        partition_index:i32 committed_offset:i64 committed_leader_epoch(5+):i32 metadata:s?
        error_code:i16]] error_code(2-7):i16 groups(8+):[group_id:s topics:[name(8-9):s
        topic_id(10+):uuid partitions:[partition_index:i32 committed_offset:i64
        committed_leader_epoch:i32 metadata:s? error_code:i16]] error_code:i16]""",
    "JoinGroup": """throttle_time_ms(2+):i32 error_code:i16 generation_id:i32
        protocol_type(7+):s?7+ protocol_name:s?7+ leader:s skip_assignment(9+):bool member_id:s
        members:[member_id:s group_instance_id(5+):s?5+ metadata:b]""",
    "Heartbeat": "throttle_time_ms(1+):i32 error_code:i16",
    "LeaveGroup": """throttle_time_ms(1+):i32 error_code:i16 members(3+):[member_id:s
        group_instance_id:s?3+ error_code:i16]""",
    "SyncGroup": """throttle_time_ms(1+):i32 error_code:i16 protocol_type(5+):s?5+
        protocol_name(5+):s?5+ assignment:b""",
    "DescribeGroups": """throttle_time_ms(1+):i32 groups:[error_code:i16 error_message(6+):s?6+
        group_id:s group_state:s protocol_type:s protocol_data:s members:[member_id:s
        group_instance_id(4+):s?4+ client_id:s client_host:s member_metadata:b
        member_assignment:b] authorized_operations(3+):i32]""",
    "ListGroups": """throttle_time_ms(1+):i32 error_code:i16 groups:[group_id:s protocol_type:s
        group_state(4+):s group_type(5+):s]""",
    "DeleteGroups": """throttle_time_ms:i32 results:[group_id:s error_code:i16
        error_message(3+):s?3+]""",
    "OffsetDelete": """error_code:i16 throttle_time_ms:i32 topics:[name:s partitions:[
        partition_index:i32 error_code:i16]]""",
    "LeaderAndIsr": """error_code:i16 partition_errors(0-4):[topic_name:s partition_index:i32
        error_code:i16] topics(5+):[topic_id:uuid partition_errors:[partition_index:i32
        error_code:i16]]""",
    "StopReplica": """error_code:i16 partition_errors:[topic_name:s partition_index:i32
        error_code:i16]""",
    "UpdateMetadata": "error_code:i16",
    "ControlledShutdown": """error_code:i16 remaining_partitions:[topic_name:s
        partition_index:i32]""",
    "ElectLeaders": """throttle_time_ms:i32 error_code(1+):i16 results:[topic:s partitions:[
        partition_id:i32 error_code:i16 error_message:s?]]""",
    "AlterPartitionReassignments": """throttle_time_ms:i32
        allow_replication_factor_change(1+):bool error_code:i16 error_message:s?
        responses:[name:s partitions:[partition_index:i32 error_code:i16 error_message:s?]]""",
    "ListPartitionReassignments": """throttle_time_ms:i32 error_code:i16 error_message:s?
        topics:[name:s partitions:[partition_index:i32 replicas:[i32] adding_replicas:[i32]
        removing_replicas:[i32]]]""",
    "AlterPartition": """throttle_time_ms:i32 error_code:i16 topics:[topic_name(0-1):s
        topic_id(2+):uuid partitions:[partition_index:i32 error_code:i16 leader_id:i32
        leader_epoch:i32 isr:[i32] leader_recovery_state(1+):i8 partition_epoch:i32]]""",
    "AllocateProducerIds": """throttle_time_ms:i32 error_code:i16 producer_id_start:i64
        producer_id_len:i32""",
}

WITHOUT_CLIENT_ID = ("ControlledShutdown", 0)  # a header older than the client id

INTS = {"i8": ">b", "i16": ">h", "i32": ">i", "i64": ">q", "bool": ">?"}
TOKEN = re.compile(r"(\w+)(?:\(([^)]*)\))?:|([\w]+|[\[\]{}])|(\?)(?:(\d+)\+)?")


class Field:
    """One field: name, versions [first, last], tag or None, type, nullable_from or None."""

    def __init__(self, name, versions):
        self.name, self.first, self.last, self.tag = name, 0, 1 << 15, None
        self.type, self.nullable_from = None, None
        for part in (versions or "").split(","):
            if part.startswith("#"):
                self.tag = int(part[1:])
            elif part.endswith("+"):
                self.first = int(part[:-1])
            elif part:
                first, _, last = part.partition("-")
                self.first, self.last = int(first), int(last or first)

    def is_in(self, version):
        return self.first <= version <= self.last


class Parser:
    """Recursive descent over the shorthand; nesting is as deep as the schemas, at most five."""

    def __init__(self, text):
        self.tokens = list(TOKEN.finditer(text))
        self.at = 0

    def fields(self, end):
        found = []
        while self.at < len(self.tokens) and self.tokens[self.at].group(3) != end:
            token = self.tokens[self.at]
            self.at += 1
            field = Field(token.group(1), token.group(2))
            field.type = self.type()
            if self.at < len(self.tokens) and self.tokens[self.at].group(4):
                field.nullable_from = int(self.tokens[self.at].group(5) or 0)
                self.at += 1
            found.append(field)
        self.at += 1
        return tuple(found)

    def type(self):
        word = self.tokens[self.at].group(3)
        self.at += 1
        if word == "{":
            return ("struct", self.fields("}"))
        if word != "[":
            return word
        if self.tokens[self.at].group(1) is None:
            inner = self.type()
            self.at += 1
            return ("array", inner)
        return ("array", ("struct", self.fields("]")))


def parse(text):
    return Parser(text).fields("end")


def uvarint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def default(kind):
    if isinstance(kind, tuple):
        return [] if kind[0] == "array" else None
    return {"s": "", "b": b"", "r": b"", "uuid": bytes(16), "bool": False}.get(kind, 0)


class Encoder:
    def __init__(self, version, flexible):
        self.version, self.flexible, self.out = version, flexible, bytearray()

    def length(self, count, small):
        if self.flexible:
            self.out += uvarint(0 if count is None else count + 1)
        else:
            self.out += struct.pack(">h" if small else ">i", -1 if count is None else count)

    def value(self, kind, value, nullable):
        assert value is not None or nullable, "null where none may be"
        if kind in INTS:
            self.out += struct.pack(INTS[kind], value)
        elif kind == "uuid":
            self.out += value
        elif kind in ("s", "b", "r"):
            data = value.encode() if isinstance(value, str) else value
            self.length(None if data is None else len(data), kind == "s")
            self.out += data or b""
        elif kind[0] == "array":
            self.length(None if value is None else len(value), False)
            for item in value or []:
                self.value(kind[1], item, False)
        else:
            if nullable:
                self.out += b"\xff" if value is None else b"\x01"
            if value is not None:
                self.struct(kind[1], value)

    def struct(self, fields, values):
        unknown = set(values) - {field.name for field in fields}
        assert not unknown, f"no such field: {unknown}"
        tagged = []
        for field in fields:
            if not field.is_in(self.version):
                continue
            if field.tag is not None:
                if field.name in values:
                    tagged.append(field)
                continue
            nullable = field.nullable_from is not None and self.version >= field.nullable_from
            self.value(field.type, values.get(field.name, default(field.type)), nullable)
        if self.flexible:
            self.tags(tagged, values)

    def tags(self, tagged, values):
        self.out += uvarint(len(tagged))
        for field in tagged:
            inner = Encoder(self.version, True)
            inner.value(field.type, values[field.name], field.nullable_from is not None)
            self.out += uvarint(field.tag) + uvarint(len(inner.out)) + inner.out


class Decoder:
    def __init__(self, version, flexible, data):
        self.version, self.flexible, self.data, self.at = version, flexible, data, 0

    def take(self, count):
        assert 0 <= count <= len(self.data) - self.at, "short frame"
        self.at += count
        return self.data[self.at - count:self.at]

    def uvarint(self):
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def length(self, small):
        if self.flexible:
            return self.uvarint() - 1
        return struct.unpack(">h" if small else ">i", self.take(2 if small else 4))[0]

    def value(self, kind, nullable):
        if kind in INTS:
            return struct.unpack(INTS[kind], self.take(struct.calcsize(INTS[kind])))[0]
        if kind == "uuid":
            return self.take(16)
        if kind in ("s", "b", "r"):
            size = self.length(kind == "s")
            data = None if size < 0 else self.take(size)
            return data.decode() if kind == "s" and data is not None else data
        if kind[0] == "array":
            count = self.length(False)
            return None if count < 0 else [self.value(kind[1], False) for _ in range(count)]
        if nullable and self.take(1) == b"\xff":
            return None
        return self.struct(kind[1])

    def struct(self, fields):
        values, tagged = {}, {}
        for field in fields:
            if not field.is_in(self.version):
                continue
            if field.tag is not None:
                tagged[field.tag] = field
                continue
            values[field.name] = self.value(field.type, field.nullable_from is not None)
        if self.flexible:
            self.tags(tagged, values)
        return values

    def tags(self, tagged, values):
        for _ in range(self.uvarint()):
            tag, size = self.uvarint(), self.uvarint()
            inner = Decoder(self.version, True, self.take(size))
            field = tagged[tag]
            values[field.name] = inner.value(field.type, field.nullable_from is not None)
            assert inner.at == size, f"bytes left in tag {tag}"


def encode_request(api, key, version, correlation, client_id, values):
    """Return one whole frame without its size."""
    flexible = version >= FLEXIBLE_FROM[api]
    encoder = Encoder(version, flexible)
    encoder.struct(parse(REQUESTS[api]), values)
    header = struct.pack(">hhih", key, version, correlation, len(client_id)) + client_id.encode()
    return header + (b"\0" if flexible else b"") + bytes(encoder.out)


def decode_response(api, version, frame):
    """Return (correlation id, dict); assert that every byte was understood."""
    flexible = version >= FLEXIBLE_FROM[api]
    start = 5 if flexible and api != "ApiVersions" else 4
    decoder = Decoder(version, flexible, frame[start:])
    values = decoder.struct(parse(RESPONSES[api]))
    assert decoder.at == len(frame) - start, f"{len(frame) - start - decoder.at} bytes left over"
    return struct.unpack(">i", frame[:4])[0], values


def header_of(api, version, frame):
    """Return a request's client id, and where its header ends but for its tags."""
    if (api, version) == WITHOUT_CLIENT_ID:
        return "", 8
    size = max(struct.unpack(">h", frame[8:10])[0], 0)
    return frame[10:10 + size].decode(), 10 + size


def decode_request(api, version, frame):
    """Return (client id, dict); assert that every byte was understood."""
    flexible = version >= FLEXIBLE_FROM[api]
    client_id, start = header_of(api, version, frame)
    start += 1 if flexible else 0
    decoder = Decoder(version, flexible, frame[start:])
    values = decoder.struct(parse(REQUESTS[api]))
    assert decoder.at == len(frame) - start, f"{len(frame) - start - decoder.at} bytes left over"
    return client_id, values
