// SPDX-License-Identifier: Apache-2.0
// A broker that runs already, as Kafka's integration tests want to see a cluster. One broker stands
// for the three that many tests ask for: a topic gets as many replicas as there are brokers.

import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ExecutionException;
import kafka.server.ControllerServer;
import kafka.server.KafkaBroker;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.GroupListing;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.test.ClusterInstance;
import org.apache.kafka.common.test.api.ClusterConfig;
import org.apache.kafka.common.test.api.Type;
import org.apache.kafka.server.fault.FaultHandlerException;
import org.opentest4j.TestAbortedException;

/** The running broker, behind the interface of the test framework. */
class Cluster implements ClusterInstance {
    private static final String BOOTSTRAP = System.getProperty("bootstrap");
    private static final int WAIT_MS = 15_000;
    /** Keys whose value no test looks at: how internal topics are laid out, and how fast it starts. */
    private static final Set<String> OF_NO_MATTER = Set.of("default.replication.factor",
        "offsets.topic.num.partitions", "offsets.topic.replication.factor",
        "transaction.state.log.num.partitions", "transaction.state.log.replication.factor",
        "transaction.state.log.min.isr", "share.coordinator.state.topic.num.partitions",
        "share.coordinator.state.topic.replication.factor",
        "share.coordinator.state.topic.min.isr", "group.initial.rebalance.delay.ms",
        "controlled.shutdown.enable", "log.initial.task.delay.ms",
        "transaction.partition.verification.enable", "group.consumer.assignment.interval.ms");

    private final ClusterConfig config;
    private boolean isPrepared;

    Cluster(ClusterConfig config) {
        this.config = config;
    }

    private static TestAbortedException cannot(String what) {
        return new TestAbortedException("a broker that runs already has no " + what);
    }

    /** Skips the test if the broker is not what it wants, and empties it otherwise. */
    void prepare() throws Exception {
        if (config.brokerSecurityProtocol() != SecurityProtocol.PLAINTEXT) {
            throw cannot("listener of " + config.brokerSecurityProtocol());
        }
        try (Admin admin = admin()) {
            ConfigResource broker = new ConfigResource(ConfigResource.Type.BROKER,
                Integer.toString(brokerIds().iterator().next()));
            Config have = admin.describeConfigs(List.of(broker)).all().get().get(broker);
            for (Map.Entry<String, String> one : config.serverProperties().entrySet()) {
                ConfigEntry entry = have.get(one.getKey());
                String value = entry == null ? null : entry.value();
                if (!OF_NO_MATTER.contains(one.getKey()) && !one.getValue().equals(value)) {
                    throw cannot(one.getKey() + "=" + one.getValue() + " (it is " + value + ")");
                }
            }
        }
        empty();
        isPrepared = true;
    }

    /** Empties it again, if the test ran at all. */
    void leave() throws Exception {
        if (isPrepared) {
            empty();
        }
    }

    /** Deletes all topics and groups. A consumer that still runs may make its topic once more. */
    private void empty() throws Exception {
        try (Admin admin = admin()) {
            List<String> groups = new ArrayList<>();
            for (GroupListing one : admin.listGroups().all().get()) {
                groups.add(one.groupId());
            }
            for (String one : groups) {
                try {
                    admin.deleteConsumerGroups(List.of(one)).all().get();
                } catch (ExecutionException e) {
                    // One that still has members goes by itself.
                }
            }
            await("topics to be gone", () -> {
                Set<String> topics = admin.listTopics().names().get();
                admin.deleteTopics(topics);
                return topics.isEmpty();
            });
        }
    }

    private interface Condition {
        boolean holds() throws Exception;
    }

    private static void await(String what, Condition condition) throws InterruptedException {
        long end = System.nanoTime() + WAIT_MS * 1_000_000L;
        while (System.nanoTime() < end) {
            try {
                if (condition.holds()) {
                    return;
                }
            } catch (InterruptedException e) {
                throw e;
            } catch (Exception e) {
                // Not yet.
            }
            Thread.sleep(20);
        }
        throw new AssertionError("waited " + WAIT_MS + " ms for " + what);
    }

    private interface Question<T> {
        T ask(Admin admin) throws Exception;
    }

    private <T> T ask(Question<T> question) {
        try (Admin admin = admin()) {
            return question.ask(admin);
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    @Override
    public void createTopic(String topic, int partitions, short replicas)
        throws InterruptedException {
        createTopic(topic, partitions, replicas, Map.of());
    }

    @Override
    public void createTopic(String topic, int partitions, short replicas,
        Map<String, String> configs) throws InterruptedException {
        ClusterInstance.super.createTopic(topic, partitions,
            (short) Math.min(replicas, brokerIds().size()), configs);
    }

    @Override
    public void waitTopicCreation(String topic, int partitions) throws InterruptedException {
        try (Admin admin = admin()) {
            await(topic + " to have " + partitions + " partitions", () -> {
                TopicDescription said =
                    admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic);
                return said.partitions().size() == partitions
                    && said.partitions().stream().allMatch(p -> p.leader() != null);
            });
        }
    }

    @Override
    public void waitTopicDeletion(String topic) throws InterruptedException {
        try (Admin admin = admin()) {
            await(topic + " to be gone", () -> !admin.listTopics().names().get().contains(topic));
        }
    }

    @Override
    public Set<Integer> brokerIds() {
        return ask(admin -> {
            Set<Integer> ids = new TreeSet<>();
            for (Node node : admin.describeCluster().nodes().get()) {
                ids.add(node.id());
            }
            return ids;
        });
    }

    @Override
    public String clusterId() {
        return ask(admin -> admin.describeCluster().clusterId().get());
    }

    @Override
    public String bootstrapServers() {
        return BOOTSTRAP;
    }

    @Override
    public List<Integer> brokerBoundPorts() {
        return List.of(Integer.parseInt(BOOTSTRAP.substring(BOOTSTRAP.lastIndexOf(':') + 1)));
    }

    @Override
    public ListenerName clientListener() {
        return ListenerName.normalised("PLAINTEXT");
    }

    @Override
    public Type type() {
        return Type.KRAFT;
    }

    @Override
    public ClusterConfig config() {
        return config;
    }

    @Override
    public void start() {
        // It runs.
    }

    @Override
    public boolean started() {
        return true;
    }

    @Override
    public boolean stopped() {
        return false;
    }

    @Override
    public void waitForReadyBrokers() {
        // They are.
    }

    @Override
    public void ensureConsistentMetadata() {
        // One broker agrees with itself.
    }

    @Override
    public void waitAcls(AclBindingFilter filter, Collection<AccessControlEntry> entries) {
        throw cannot("ACLs");
    }

    @Override
    public Optional<FaultHandlerException> firstFatalException() {
        return Optional.empty();
    }

    @Override
    public Optional<FaultHandlerException> firstNonFatalException() {
        return Optional.empty();
    }

    @Override
    public Map<Integer, KafkaBroker> brokers() {
        throw cannot("inside to look at: brokers()");
    }

    @Override
    public Map<Integer, ControllerServer> controllers() {
        throw cannot("inside to look at: controllers()");
    }

    @Override
    public Set<Integer> controllerIds() {
        throw cannot("inside to look at: controllerIds()");
    }

    @Override
    public ListenerName controllerListenerName() {
        throw cannot("listener for controllers");
    }

    @Override
    public String bootstrapControllers() {
        throw cannot("listener for controllers");
    }

    @Override
    public void stop() {
        throw cannot("switch: stop()");
    }

    @Override
    public void shutdownBroker(int id) {
        throw cannot("switch: shutdownBroker()");
    }

    @Override
    public void startBroker(int id) {
        throw cannot("switch: startBroker()");
    }
}
