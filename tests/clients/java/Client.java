// SPDX-License-Identifier: Apache-2.0
// The Java client behind the common command line of the clients (see ../README.md).

import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Future;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.StringSerializer;

public final class Client {
    private static final HexFormat HEX = HexFormat.of();
    private static final PrintStream OUT =
            new PrintStream(new FileOutputStream(FileDescriptor.out), false);

    private static final long WORK_MS = // of a member, between reading and committing
            Long.parseLong(System.getenv().getOrDefault("WORK_MS", "0"));

    private static final String CLIENT_ID = System.getenv().getOrDefault("CLIENT_ID", "member");

    private static byte[] parse(String field) {
        return field.equals("null") ? null : HEX.parseHex(field.substring(1));
    }

    private static String show(byte[] data) {
        return data == null ? "null" : "x" + HEX.formatHex(data);
    }

    private static void version() throws IOException {
        Properties about = new Properties();
        about.load(Admin.class.getResourceAsStream("/kafka/kafka-version.properties"));
        OUT.println("java " + about.getProperty("version"));
        OUT.println("codecs none gzip snappy lz4 zstd");
        OUT.println("idempotence yes");
        OUT.println("timestamps yes");
        OUT.println("acks yes");
        OUT.println("null_headers yes");
    }

    private static void create(String bootstrap, String topic, String partitions)
            throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
            NewTopic wanted = new NewTopic(topic, Integer.parseInt(partitions), (short) 1);
            admin.createTopics(List.of(wanted)).all().get();
        }
    }

    private static ProducerRecord<byte[], byte[]> record(String topic, String line) {
        String[] part = line.split(" ");
        List<Header> headers = new ArrayList<>();
        if (!part[4].equals("-")) {
            for (String header : part[4].split(",")) {
                String[] pair = header.split("=");
                String name = new String(parse(pair[0]), StandardCharsets.UTF_8);
                headers.add(new RecordHeader(name, parse(pair[1])));
            }
        }
        return new ProducerRecord<>(topic, Integer.valueOf(part[0]), Long.valueOf(part[1]),
                parse(part[2]), parse(part[3]), headers);
    }

    private static void produce(String bootstrap, String topic, String codec, String idempotent,
            String path) throws Exception {
        Map<String, Object> config = Map.of("bootstrap.servers", bootstrap, "acks", "all",
                "linger.ms", 50, "batch.size", 400_000, "compression.type", codec,
                "enable.idempotence", Boolean.parseBoolean(idempotent));
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(config,
                new ByteArraySerializer(), new ByteArraySerializer())) {
            for (String line : Files.readAllLines(Path.of(path))) {
                sent.add(producer.send(record(topic, line)));
            }
            producer.flush();
            for (Future<RecordMetadata> one : sent) {
                OUT.println(one.get().partition() + " " + one.get().offset());
            }
        }
    }

    private static void print(ConsumerRecord<byte[], byte[]> record) {
        StringBuilder headers = new StringBuilder();
        for (Header header : record.headers()) {
            headers.append(headers.length() == 0 ? "" : ",")
                    .append(show(header.key().getBytes(StandardCharsets.UTF_8))).append('=')
                    .append(show(header.value()));
        }
        OUT.println(record.partition() + " " + record.offset() + " " + record.timestamp() + " "
                + show(record.key()) + " " + show(record.value()) + " "
                + (headers.length() == 0 ? "-" : headers));
    }

    private static void readAll(KafkaConsumer<byte[], byte[]> consumer, String topic) {
        List<TopicPartition> parts = new ArrayList<>();
        consumer.partitionsFor(topic)
                .forEach(p -> parts.add(new TopicPartition(topic, p.partition())));
        consumer.assign(parts);
        consumer.seekToBeginning(parts);
        Map<TopicPartition, Long> ends = consumer.endOffsets(parts);
        while (parts.stream().anyMatch(p -> consumer.position(p) < ends.get(p))) {
            consumer.poll(Duration.ofSeconds(5)).forEach(Client::print);
        }
    }

    private static void consume(String bootstrap, List<String> topics) {
        Map<String, Object> config = Map.of("bootstrap.servers", bootstrap,
                "auto.offset.reset", "none", "enable.auto.commit", false, "check.crcs", true,
                "fetch.max.wait.ms", 20);
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(config,
                new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            for (String topic : topics) {
                OUT.println("topic " + topic);
                readAll(consumer, topic);
            }
        }
    }

    /** A member of a group until SIGTERM; see ../groups/members.py. */
    private static void member(String bootstrap, String group, String topic) {
        Map<String, Object> config = Map.of("bootstrap.servers", bootstrap, "group.id", group,
                "client.id", CLIENT_ID, "auto.offset.reset", "earliest",
                "enable.auto.commit", false,
                "session.timeout.ms", 6000, "heartbeat.interval.ms", 1000,
                "partition.assignment.strategy", RangeAssignor.class.getName());
        KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(config,
                new ByteArrayDeserializer(), new ByteArrayDeserializer());
        Thread reader = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            consumer.wakeup();
            try {
                reader.join();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }));
        consumer.subscribe(List.of(topic), new Owned(consumer));
        try (consumer) {
            while (true) {
                readSome(consumer);
            }
        } catch (WakeupException e) {
            OUT.flush();
        }
    }

    private static void readSome(KafkaConsumer<byte[], byte[]> consumer) {
        ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofMillis(200));
        records.forEach(r -> OUT.println(r.partition() + " " + r.offset()));
        OUT.flush();
        try {
            if (!records.isEmpty()) {
                Thread.sleep(WORK_MS);
                consumer.commitSync();
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } catch (CommitFailedException | RetriableException e) {
            System.err.println(e); // the group rebalances: somebody reads them again
        }
    }

    /** Prints what a member owns, and in which generation. */
    private record Owned(KafkaConsumer<byte[], byte[]> consumer)
            implements ConsumerRebalanceListener {
        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> assigned) {
            OUT.print("generation " + consumer.groupMetadata().generationId());
            assigned.forEach(p -> OUT.print(" " + p.partition()));
            OUT.println();
            OUT.flush();
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> revoked) {
        }
    }

    /** Writes the lines of standard input, with the settings that a producer has by itself. */
    private static void write(String bootstrap, String topic) throws IOException {
        BufferedReader lines = new BufferedReader(
                new InputStreamReader(System.in, StandardCharsets.UTF_8));
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(
                Map.of("bootstrap.servers", bootstrap),
                new StringSerializer(), new StringSerializer())) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                String[] part = line.split(" ", 2);
                producer.send(new ProducerRecord<>(topic, Integer.valueOf(part[0]), null, part[1]),
                        (where, error) -> written(where, part[1], error));
            }
        }
    }

    private static void written(RecordMetadata where, String value, Exception error) {
        if (error != null) {
            System.err.println(error);
            Runtime.getRuntime().halt(1);
        }
        OUT.println(where.partition() + " " + where.offset() + " " + value);
        OUT.flush();
    }

    public static void main(String[] args) throws Exception {
        switch (args[0]) {
            case "version" -> version();
            case "create" -> create(args[1], args[2], args[3]);
            case "produce" -> produce(args[1], args[2], args[3], args[4], args[5]);
            case "consume" -> consume(args[1], List.of(args).subList(2, args.length));
            case "member" -> member(args[1], args[2], args[3]);
            case "write" -> write(args[1], args[2]);
            default -> throw new IllegalArgumentException(args[0]);
        }
        OUT.flush();
    }
}
