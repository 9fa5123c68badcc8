// SPDX-License-Identifier: Apache-2.0
// Java's console consumer behind the common command line of the clients (see ../README.md). It can
// only read, as the only member of a group; its formatter, which is this class too, prints the
// lines of dataset.py. What the tool and its logger say themselves goes to standard error.

import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Properties;

import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.MessageFormatter;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.tools.consumer.ConsoleConsumer;

public final class Console implements MessageFormatter {
    private static final HexFormat HEX = HexFormat.of();
    private static final PrintStream OUT =
            new PrintStream(new FileOutputStream(FileDescriptor.out), false);
    private static final int SILENT_MS = 30_000; // then records are missing

    private String topic; // of the record before

    private static String show(byte[] data) {
        return data == null ? "null" : "x" + HEX.formatHex(data);
    }

    private static String show(Iterable<Header> headers) {
        StringBuilder shown = new StringBuilder();
        for (Header header : headers) {
            shown.append(shown.length() == 0 ? "" : ",")
                    .append(show(header.key().getBytes(StandardCharsets.UTF_8))).append('=')
                    .append(show(header.value()));
        }
        return shown.length() == 0 ? "-" : shown.toString();
    }

    @Override
    public void writeTo(ConsumerRecord<byte[], byte[]> record, PrintStream tools) {
        if (!record.topic().equals(topic)) {
            topic = record.topic();
            OUT.println("topic " + topic);
        }
        OUT.println(record.partition() + " " + record.offset() + " " + record.timestamp() + " "
                + show(record.key()) + " " + show(record.value()) + " " + show(record.headers()));
    }

    @Override
    public void close() {
        OUT.flush();
    }

    private static void version() throws IOException {
        Properties about = new Properties();
        about.load(KafkaConsumer.class.getResourceAsStream("/kafka/kafka-version.properties"));
        OUT.println("java-console " + about.getProperty("version"));
        OUT.println("codecs none gzip snappy lz4 zstd");
        OUT.println("writes no");
        OUT.flush();
    }

    private static long countRecords(String bootstrap, List<String> topics) {
        List<TopicPartition> parts = new ArrayList<>();
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(
                Map.of("bootstrap.servers", bootstrap),
                new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            topics.forEach(t -> consumer.partitionsFor(t)
                    .forEach(p -> parts.add(new TopicPartition(t, p.partition()))));
            return consumer.endOffsets(parts).values().stream().mapToLong(n -> n).sum();
        }
    }

    private static void consume(String bootstrap, List<String> topics) throws Exception {
        long count = countRecords(bootstrap, topics);
        ConsoleConsumer.main(new String[] {"--bootstrap-server", bootstrap,
            "--include", String.join("|", topics), "--group", "console-" + System.nanoTime(),
            "--from-beginning", "--max-messages", Long.toString(count),
            "--timeout-ms", Integer.toString(SILENT_MS), "--formatter", Console.class.getName(),
            "--command-property", "fetch.max.wait.ms=20"});
    }

    public static void main(String[] args) throws Exception {
        System.setOut(System.err);
        switch (args[0]) {
            case "version" -> version();
            case "consume" -> consume(args[1], List.of(args).subList(2, args.length));
            default -> throw new IllegalArgumentException(args[0]);
        }
    }
}
