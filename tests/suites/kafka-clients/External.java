// SPDX-License-Identifier: Apache-2.0
// Apache Kafka's integration tests start a cluster for each test through a JUnit extension. This one
// takes its place: it lends them a broker that runs already (-Dbootstrap=HOST:PORT), empties it before
// and after each test, and skips a test that wants what such a broker cannot give.

import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;
import org.apache.kafka.common.test.ClusterInstance;
import org.apache.kafka.common.test.api.ClusterConfig;
import org.apache.kafka.common.test.api.ClusterConfigProperty;
import org.apache.kafka.common.test.api.ClusterTemplate;
import org.apache.kafka.common.test.api.ClusterTest;
import org.apache.kafka.common.test.api.ClusterTestDefaults;
import org.apache.kafka.common.test.api.ClusterTests;
import org.apache.kafka.common.test.api.Type;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.Extension;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;
import org.junit.jupiter.api.extension.TestTemplateInvocationContext;
import org.junit.jupiter.api.extension.TestTemplateInvocationContextProvider;

/** Gives each test the running broker. */
public class External implements TestTemplateInvocationContextProvider {
    @Override
    public boolean supportsTestTemplate(ExtensionContext context) {
        Method method = context.getRequiredTestMethod();
        return method.isAnnotationPresent(ClusterTest.class)
            || method.isAnnotationPresent(ClusterTests.class)
            || method.isAnnotationPresent(ClusterTemplate.class);
    }

    @Override
    public Stream<TestTemplateInvocationContext> provideTestTemplateInvocationContexts(
        ExtensionContext context) {
        return wanted(context).stream().map(Invocation::new);
    }

    /** The clusters that a method asks for, one for each of its runs. */
    private static List<ClusterConfig> wanted(ExtensionContext context) {
        Class<?> tests = context.getRequiredTestClass();
        Method method = context.getRequiredTestMethod();
        ClusterTestDefaults defaults = tests.getAnnotation(ClusterTestDefaults.class);
        List<ClusterConfig> wanted = new ArrayList<>();
        ClusterTest single = method.getAnnotation(ClusterTest.class);
        if (single != null) {
            wanted.add(config(single, defaults));
        }
        ClusterTests several = method.getAnnotation(ClusterTests.class);
        for (ClusterTest one : several == null ? new ClusterTest[0] : several.value()) {
            wanted.add(config(one, defaults));
        }
        ClusterTemplate template = method.getAnnotation(ClusterTemplate.class);
        if (template != null) {
            wanted.addAll(made(tests, template.value()));
        }
        return wanted;
    }

    @SuppressWarnings("unchecked")
    private static List<ClusterConfig> made(Class<?> tests, String name) {
        try {
            Method maker = tests.getDeclaredMethod(name);
            maker.setAccessible(true);
            return (List<ClusterConfig>) maker.invoke(null);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }

    private static ClusterConfig config(ClusterTest test, ClusterTestDefaults defaults) {
        Map<String, String> properties = new HashMap<>();
        if (defaults != null) {
            put(properties, defaults.serverProperties());
        }
        put(properties, test.serverProperties());
        int brokers = test.brokers() > 0 || defaults == null ? test.brokers() : defaults.brokers();
        return ClusterConfig.defaultBuilder().setTypes(Set.of(Type.KRAFT))
            .setBrokers(Math.max(brokers, 1)).setServerProperties(properties)
            .setBrokerSecurityProtocol(test.brokerSecurityProtocol()).build();
    }

    private static void put(Map<String, String> properties, ClusterConfigProperty[] given) {
        for (ClusterConfigProperty one : given) {
            properties.put(one.id() < 0 ? one.key() : one.id() + ":" + one.key(), one.value());
        }
    }

    /** One run of a test. */
    private record Invocation(ClusterConfig config) implements TestTemplateInvocationContext {
        @Override
        public List<Extension> getAdditionalExtensions() {
            Cluster cluster = new Cluster(config);
            BeforeEachCallback before = context -> cluster.prepare();
            AfterEachCallback after = context -> cluster.leave();
            return List.of(new Lender(cluster), before, after);
        }
    }

    /** Hands the cluster to constructors and methods that ask for one. */
    private record Lender(Cluster cluster) implements ParameterResolver {
        @Override
        public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
            return parameter.getParameter().getType() == ClusterInstance.class;
        }

        @Override
        public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
            return cluster;
        }
    }
}
