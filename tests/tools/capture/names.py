# SPDX-License-Identifier: Apache-2.0
"""The APIs whose frames are kept as golden bytes, by key."""

API_NAMES = {
    0: "Produce",
    1: "Fetch",
    2: "ListOffsets",
    3: "Metadata",
    10: "FindCoordinator",
    18: "ApiVersions",
    19: "CreateTopics",
    20: "DeleteTopics",
    21: "DeleteRecords",
    22: "InitProducerId",
    23: "OffsetForLeaderEpoch",
    32: "DescribeConfigs",
    33: "AlterConfigs",
    35: "DescribeLogDirs",
    37: "CreatePartitions",
    44: "IncrementalAlterConfigs",
    60: "DescribeCluster",
    61: "DescribeProducers",
    75: "DescribeTopicPartitions",
}
API_KEYS = {name: key for key, name in API_NAMES.items()}
