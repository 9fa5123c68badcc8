// SPDX-License-Identifier: Apache-2.0
// kafkajs as a member of a group; see ../groups/members.py.
//
//   NODE_PATH=CACHE/kafkajs/node_modules node member.js BOOTSTRAP GROUP TOPIC
'use strict';

const { Kafka, logLevel } = require('kafkajs');

const [bootstrap, groupId, topic] = process.argv.slice(2);

async function main() {
    const kafka = new Kafka({ brokers: [bootstrap], logLevel: logLevel.ERROR });
    const consumer = kafka.consumer({
        groupId, sessionTimeout: 6000, heartbeatInterval: 1000, maxWaitTimeInMs: 200,
    });

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
