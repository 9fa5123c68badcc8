// SPDX-License-Identifier: Apache-2.0
// kafkajs behind the common command line of the clients (see ../README.md).
//
//   NODE_PATH=CACHE/kafkajs/node_modules node client.js COMMAND...
//
// It reads as the only member of a group, for that is all its consumer can do. Of the codecs it has
// gzip; the others are registered here. snappy has a package for kafkajs. Those for lz4 and zstd
// cannot be had (fetch-peers says why), so their codecs come from packages that know no Kafka.
// Headers are an object, so the order of different names is lost, both ways.
'use strict';

const fs = require('fs');
const { Kafka, logLevel, CompressionTypes, CompressionCodecs } = require('kafkajs');
const lz4 = require('lz4-napi');
const zstd = require('@bokuweb/zstd-wasm');

const CODECS = {
    none: CompressionTypes.None,
    gzip: CompressionTypes.GZIP,
    snappy: CompressionTypes.Snappy,
    lz4: CompressionTypes.LZ4,
    zstd: CompressionTypes.ZSTD,
};
const ZSTD_UNSIZED_BYTES = 16 * 1024 * 1024; // room for a batch that does not tell its size
const ZSTD_LEVEL = 3;
const SEND_RECORDS = 20;

CompressionCodecs[CompressionTypes.Snappy] = require('kafkajs-snappy');
CompressionCodecs[CompressionTypes.LZ4] = () => ({
    compress: ({ buffer }) => lz4.compressFrame(buffer),
    decompress: (buffer) => lz4.decompressFrame(buffer),
});
CompressionCodecs[CompressionTypes.ZSTD] = () => ({
    compress: async ({ buffer }) => Buffer.from(zstd.compress(buffer, ZSTD_LEVEL)),
    decompress: async (buffer) =>
        Buffer.from(zstd.decompress(buffer, { defaultHeapSize: ZSTD_UNSIZED_BYTES })),
});

const connect = (bootstrap) => new Kafka({ brokers: [bootstrap], logLevel: logLevel.ERROR });
const parse = (field) => (field === 'null' ? null : Buffer.from(field.slice(1), 'hex'));
const show = (data) => (data === null ? 'null' : `x${data.toString('hex')}`);
const print = (line) => process.stdout.write(`${line}\n`);

function version() {
    print(`kafkajs ${require('kafkajs/package.json').version}`);
    print(`codecs ${Object.keys(CODECS).join(' ')}`);
    print('idempotence yes');
    print('timestamps yes');
    print('acks yes');
    print('null_headers no');
    print('header_order no');
}

async function create(bootstrap, topic, partitions) {
    const admin = connect(bootstrap).admin();

    await admin.connect();
    await admin.createTopics({ topics: [{ topic, numPartitions: Number(partitions) }] });
    await admin.disconnect();
}

function parseHeaders(text) {
    const headers = {};

    for (const pair of text === '-' ? [] : text.split(',')) {
        const [name, value] = pair.split('=').map(parse);
        (headers[name.toString()] ||= []).push(value);
    }
    return headers;
}

function parseRecord(line) {
    const [partition, timestamp, key, value, headers] = line.split(' ');

    return { partition: Number(partition), timestamp, key: parse(key), value: parse(value),
        headers: parseHeaders(headers) };
}

// A send is one batch for each of its partitions, and is answered by where they begin.
async function send(producer, topic, compression, messages) {
    const acked = await producer.send({ topic, acks: -1, compression, messages });
    const next = new Map(acked.map((one) => [one.partition, BigInt(one.baseOffset)]));

    for (const { partition } of messages) {
        const offset = next.get(partition);
        print(`${partition} ${offset}`);
        next.set(partition, offset + 1n);
    }
}

async function produce(bootstrap, topic, codec, idempotent, path) {
    const records = fs.readFileSync(path, 'ascii').trimEnd().split('\n').map(parseRecord);
    const producer = connect(bootstrap).producer({ idempotent: idempotent === 'true' });

    await producer.connect();
    for (let i = 0; i < records.length; i += SEND_RECORDS)
        await send(producer, topic, CODECS[codec], records.slice(i, i + SEND_RECORDS));
    await producer.disconnect();
}

const showHeaders = (headers) => Object.entries(headers)
    .flatMap(([name, values]) => [].concat(values)
        .map((value) => `${show(Buffer.from(name))}=${show(value)}`))
    .join(',') || '-';

// Return, for each partition that is not empty, the offset of its last record.
async function lastOffsets(kafka, topics) {
    const admin = kafka.admin();
    const last = new Map();

    await admin.connect();
    for (const topic of topics)
        for (const { partition, high } of await admin.fetchTopicOffsets(topic))
            if (BigInt(high) > 0n)
                last.set(`${topic} ${partition}`, String(BigInt(high) - 1n));
    await admin.disconnect();
    return last;
}

function printBatch({ topic, partition, messages }) {
    print(`topic ${topic}`);
    for (const { offset, timestamp, key, value, headers } of messages)
        print(`${partition} ${offset} ${timestamp} ${show(key)} ${show(value)} `
            + showHeaders(headers));
}

// Resolves when the last record of each partition has been printed.
function readAll(consumer, last) {
    return new Promise((resolve, reject) => {
        consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error));
        consumer.run({
            eachBatch: async ({ batch }) => {
                const partition = `${batch.topic} ${batch.partition}`;
                printBatch(batch);
                if (batch.messages.some(({ offset }) => offset === last.get(partition)))
                    last.delete(partition);
                if (last.size === 0)
                    resolve();
            },
        }).catch(reject);
    });
}

async function consume(bootstrap, ...topics) {
    const kafka = connect(bootstrap);
    const last = await lastOffsets(kafka, topics);
    const consumer = kafka.consumer({ groupId: `kafkajs-${Date.now()}`, maxWaitTimeInMs: 20 });

    await consumer.connect();
    await consumer.subscribe({ topics, fromBeginning: true });
    await readAll(consumer, last);
    await consumer.disconnect();
}

async function main(command, ...args) {
    await zstd.init();
    await { version, create, produce, consume }[command](...args);
}

main(...process.argv.slice(2)).catch((error) => {
    console.error(error);
    process.exit(1);
});
