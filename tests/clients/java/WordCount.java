// SPDX-License-Identifier: Apache-2.0
// Word count with Kafka Streams, at least once, with a state that survives; see
// ../streams/streams.py.
//
//   WordCount BOOTSTRAP STATE_DIR INPUT OUTPUT

import java.util.Arrays;
import java.util.Locale;
import java.util.Map;
import java.util.Properties;

import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Produced;

public final class WordCount {
    private static StreamsBuilder topology(String input, String output) {
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(input, Consumed.with(Serdes.String(), Serdes.String()))
                .flatMapValues(line -> Arrays.asList(line.toLowerCase(Locale.ROOT).split(" ")))
                .groupBy((key, word) -> word, Grouped.with(Serdes.String(), Serdes.String()))
                .count()
                .toStream()
                .mapValues(String::valueOf)
                .to(output, Produced.with(Serdes.String(), Serdes.String()));
        return builder;
    }

    public static void main(String[] args) throws Exception {
        Properties config = new Properties();
        config.putAll(Map.of(
                StreamsConfig.APPLICATION_ID_CONFIG, "words",
                StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, args[0],
                StreamsConfig.STATE_DIR_CONFIG, args[1],
                StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 100,
                StreamsConfig.REPARTITION_PURGE_INTERVAL_MS_CONFIG, 200,
                StreamsConfig.NUM_STREAM_THREADS_CONFIG, 2,
                StreamsConfig.consumerPrefix("session.timeout.ms"), 6000));
        KafkaStreams streams = new KafkaStreams(topology(args[2], args[3]).build(), config);
        streams.setUncaughtExceptionHandler(e -> {
            e.printStackTrace();
            Runtime.getRuntime().halt(1);
            return null;
        });
        Runtime.getRuntime().addShutdownHook(new Thread(streams::close));
        streams.start();
        Thread.currentThread().join();
    }
}
