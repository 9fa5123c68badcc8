// SPDX-License-Identifier: Apache-2.0
// Writes transactions, so that their batches and markers can be taken from the broker's log.
// Usage: Transactions BOOTSTRAP TOPIC. Partition 0 gets a committed and an aborted transaction.

import java.util.Map;

import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

public final class Transactions {
    private static void send(KafkaProducer<String, String> producer, String topic, String value) {
        producer.beginTransaction();
        for (int number = 0; number < 3; number++) {
            producer.send(new ProducerRecord<>(topic, 0, "key-" + number, value + number));
        }
        producer.flush();
    }

    public static void main(String[] args) {
        Map<String, Object> config = Map.of("bootstrap.servers", args[0],
                "transactional.id", "golden", "linger.ms", 50);
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(config,
                new StringSerializer(), new StringSerializer())) {
            producer.initTransactions();
            send(producer, args[1], "committed ");
            producer.commitTransaction();
            send(producer, args[1], "aborted ");
            producer.abortTransaction();
            send(producer, args[1], "committed again ");
            producer.commitTransaction();
        }
    }
}
