// SPDX-License-Identifier: Apache-2.0
// Apache Kafka's command-line tools, one after the other in one process: starting a JVM for each
// would take most of the time. See ../kafka-tools/tools.py, which drives it.
//
//   Tools BOOTSTRAP
//
// Each line of standard input is a command: words separated by tabs. The first is the command's
// standard input (with \n for line ends), the second the class of the tool, the rest its arguments.
// Two commands are our own: `member GROUP TOPIC...` joins a group and reads until `leave GROUP`.
// What a command prints is printed, and then a line that begins with \u001e and has its status.

import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;

import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.utils.internals.Exit;

public final class Tools {
    private static final PrintStream OUT =
            new PrintStream(new FileOutputStream(FileDescriptor.out), true);
    private static final int JOIN_SECONDS = 30;

    private static final class Exited extends Error {
        private static final long serialVersionUID = 1L;
    }

    /** A member of a group; joins in its constructor. */
    private static final class Member implements Runnable {
        private final KafkaConsumer<byte[], byte[]> consumer;
        private final AtomicBoolean stops = new AtomicBoolean();
        private final Thread thread = new Thread(this);

        Member(String bootstrap, String group, List<String> topics) {
            consumer = new KafkaConsumer<>(Map.of("bootstrap.servers", bootstrap,
                    "group.id", group, "client.id", "member-" + group,
                    "auto.offset.reset", "earliest", "enable.auto.commit", false),
                    new ByteArrayDeserializer(), new ByteArrayDeserializer());
            consumer.subscribe(topics);
            long deadline = System.nanoTime() + Duration.ofSeconds(JOIN_SECONDS).toNanos();
            while (consumer.assignment().isEmpty() && System.nanoTime() < deadline) {
                consumer.poll(Duration.ofMillis(20));
            }
            Map<TopicPartition, OffsetAndMetadata> begin = new HashMap<>();
            consumer.assignment().forEach(p -> begin.put(p, new OffsetAndMetadata(0)));
            consumer.commitSync(begin);
            thread.start();
        }

        @Override
        public void run() {
            while (!stops.get()) {
                consumer.poll(Duration.ofMillis(50));
            }
            consumer.close();
        }

        void leave() throws InterruptedException {
            stops.set(true);
            thread.join();
        }
    }

    private static final Map<String, Member> MEMBERS = new HashMap<>();
    private static final List<Runnable> HOOKS = new ArrayList<>(); // what a tool does when it ends
    private static int status;
    private static boolean hasExited;

    private static void exit(int code, String message) {
        if (!hasExited) { // a tool may catch what is thrown here, and exit again
            status = code;
            hasExited = true;
        }
        throw new Exited();
    }

    private static void runTool(String name, String[] args) throws Exception {
        try {
            Class.forName(name).getMethod("main", String[].class).invoke(null, (Object) args);
        } catch (InvocationTargetException e) {
            if (!(e.getCause() instanceof Exited)) {
                System.out.println(e.getCause());
                status = 1;
            }
        }
        HOOKS.forEach(Runnable::run);
        HOOKS.clear();
    }

    private static void run(String bootstrap, String[] words) throws Exception {
        String[] args = Arrays.copyOfRange(words, 2, words.length);
        switch (words[1]) {
            case "member" -> MEMBERS.put(args[0],
                    new Member(bootstrap, args[0], List.of(args).subList(1, args.length)));
            case "leave" -> MEMBERS.remove(args[0]).leave();
            default -> runTool(words[1], args);
        }
    }

    private static void runAll(String bootstrap, BufferedReader commands) throws IOException {
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            String[] words = line.split("\t", -1);
            String input = words[0].replace("\\n", "\n");
            System.setIn(new ByteArrayInputStream(input.getBytes(StandardCharsets.UTF_8)));
            status = 0;
            hasExited = false;
            try {
                run(bootstrap, words);
            } catch (Exception e) {
                System.out.println(e);
                status = 1;
            }
            System.out.flush();
            OUT.println("\n\u001e" + status);
        }
    }

    public static void main(String[] args) throws IOException {
        BufferedReader commands = new BufferedReader(
                new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Exit.setExitProcedure(Tools::exit);
        Exit.setHaltProcedure(Tools::exit);
        Exit.setShutdownHookAdder((name, hook) -> HOOKS.add(hook));
        System.setOut(OUT);
        System.setErr(OUT);
        runAll(args[0], commands);
        Runtime.getRuntime().halt(0);
    }
}
