// SPDX-License-Identifier: Apache-2.0
// kafkajs as a member of a group; see ../groups/members.py.
//
//   NODE_PATH=CACHE/kafkajs/node_modules node member.js BOOTSTRAP GROUP TOPIC
'use strict';

const { Kafka, logLevel, AssignerProtocol } = require('kafkajs');

const [bootstrap, groupId, topic] = process.argv.slice(2);

// Kafka's range assignor for members that all read the same topic; kafkajs has one of its own,
// which no other client understands.
const range = ({ cluster }) => ({
    name: 'range',
    version: 0,
    protocol: ({ topics }) => ({
        name: 'range',
        metadata: AssignerProtocol.MemberMetadata.encode(
            { version: 0, topics, userData: Buffer.alloc(0) }),
    }),
    assign: async ({ members, topics }) => {
        const ids = members.map(({ memberId }) => memberId).sort();
        const partitions = cluster.findTopicPartitionMetadata(topics[0])
            .map(({ partitionId }) => partitionId).sort((a, b) => a - b);
        const each = Math.floor(partitions.length / ids.length);
        const more = partitions.length % ids.length; // this many members have one more

        return ids.map((memberId, i) => {
            const from = i * each + Math.min(i, more);
            const mine = partitions.slice(from, from + each + (i < more ? 1 : 0));
            return { memberId, memberAssignment: AssignerProtocol.MemberAssignment.encode(
                { version: 0, assignment: { [topics[0]]: mine }, userData: Buffer.alloc(0) }) };
        });
    },
});

// The generation is told by heartbeats only, what this member owns by the join before.
function printOwned(consumer) {
    let owned = [];
    let generation = -1;

    consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
        owned = payload.memberAssignment[topic] || [];
    });
    consumer.on(consumer.events.HEARTBEAT, ({ payload }) => {
        if (payload.groupGenerationId === generation)
            return;
        generation = payload.groupGenerationId;
        process.stdout.write(`generation ${generation} ${owned.join(' ')}\n`);
    });
}

async function main() {
    const kafka = new Kafka({
        brokers: [bootstrap], clientId: process.env.CLIENT_ID, logLevel: logLevel.ERROR,
    });
    const consumer = kafka.consumer({
        groupId, sessionTimeout: 6000, heartbeatInterval: 1000, maxWaitTimeInMs: 200,
        partitionAssigners: [range],
    });

    printOwned(consumer);

    process.on('SIGTERM', async () => {
        await consumer.disconnect();
        process.exit(0);
    });
    await consumer.connect();
    await consumer.subscribe({ topics: [topic], fromBeginning: true });
    await consumer.run({
        eachMessage: async ({ partition, message }) => {
            process.stdout.write(`${partition} ${message.offset}\n`);
        },
    });
}

main().catch((error) => {
    console.error(error);
    process.exit(1);
});
