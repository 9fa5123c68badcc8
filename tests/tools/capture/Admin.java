// SPDX-License-Identifier: Apache-2.0
// Calls every admin API of the captured set through the Java client, so that a proxy can record
// what it sends. Usage: Admin BOOTSTRAP TOPIC. The topic is created, changed and deleted.

import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ExecutionException;

import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.DescribeConfigsOptions;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.StringSerializer;

public final class Admin {
    private static void wait(KafkaFuture<?> future) throws InterruptedException {
        try {
            future.get();
        } catch (ExecutionException error) {
            System.err.println("answer: " + error.getCause());
        }
    }

    private static void topics(org.apache.kafka.clients.admin.Admin admin, String topic)
            throws InterruptedException {
        NewTopic wanted = new NewTopic(topic, Optional.of(2), Optional.empty())
                .configs(Map.of("retention.ms", "3600000"));
        wait(admin.createTopics(List.of(wanted)).all());
        wait(admin.createTopics(List.of(wanted)).all());
        wait(admin.createTopics(
                List.of(new NewTopic(topic + "-placed", Map.of(0, List.of(1))))).all());
        wait(admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(3))).all());
        wait(admin.describeTopics(List.of(topic)).allTopicNames());
        wait(admin.listTopics().names());
        wait(admin.describeCluster().nodes());
    }

    private static void configs(org.apache.kafka.clients.admin.Admin admin, String topic)
            throws InterruptedException {
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        AlterConfigOp set = new AlterConfigOp(new ConfigEntry("max.message.bytes", "2000000"),
                AlterConfigOp.OpType.SET);
        AlterConfigOp remove = new AlterConfigOp(new ConfigEntry("retention.ms", ""),
                AlterConfigOp.OpType.DELETE);
        wait(admin.incrementalAlterConfigs(Map.of(resource, List.of(set, remove))).all());
        wait(admin.describeConfigs(List.of(resource),
                new DescribeConfigsOptions().includeSynonyms(true)).all());
    }

    private static void data(org.apache.kafka.clients.admin.Admin admin, String bootstrap,
            String topic) throws InterruptedException {
        TopicPartition part = new TopicPartition(topic, 0);
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(
                Map.of("bootstrap.servers", bootstrap), new StringSerializer(),
                new StringSerializer())) {
            producer.send(new ProducerRecord<>(topic, 0, "key", "value"));
            producer.flush();
        }
        for (OffsetSpec spec : List.of(OffsetSpec.earliest(), OffsetSpec.latest(),
                OffsetSpec.maxTimestamp(), OffsetSpec.earliestLocal(),
                OffsetSpec.forTimestamp(1))) {
            wait(admin.listOffsets(Map.of(part, spec)).all());
        }
        wait(admin.describeProducers(List.of(part)).all());
        wait(admin.describeLogDirs(List.of(1)).allDescriptions());
        wait(admin.deleteRecords(Map.of(part, RecordsToDelete.beforeOffset(1))).all());
        wait(admin.listConsumerGroupOffsets("golden-group").partitionsToOffsetAndMetadata());
    }

    public static void main(String[] args) throws InterruptedException {
        String bootstrap = args[0];
        String topic = args[1];
        try (org.apache.kafka.clients.admin.Admin admin = org.apache.kafka.clients.admin.Admin
                .create(Map.of("bootstrap.servers", bootstrap))) {
            topics(admin, topic);
            configs(admin, topic);
            data(admin, bootstrap, topic);
            wait(admin.deleteTopics(List.of(topic, topic + "-placed")).all());
            wait(admin.deleteTopics(List.of("golden-missing")).all());
        }
    }
}
