// SPDX-License-Identifier: Apache-2.0
// Prints a line for each test: its verdict, its class and method, and why.

import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.support.descriptor.MethodSource;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;

/** Found by the launcher as a service. */
public class Verdicts implements TestExecutionListener {
    @Override
    public void executionSkipped(TestIdentifier test, String reason) {
        if (test.isTest()) {
            print("SKIP", test, reason);
        }
    }

    @Override
    public void executionFinished(TestIdentifier test, TestExecutionResult result) {
        if (!test.isTest()) {
            return;
        }
        String why = result.getThrowable().map(Throwable::toString).orElse("");
        switch (result.getStatus()) {
            case SUCCESSFUL -> print("PASS", test, "");
            case ABORTED -> print("SKIP", test, why.replaceFirst("^[A-Za-z0-9_.]*: ", ""));
            default -> {
                print("FAIL", test, why);
                result.getThrowable().ifPresent(Throwable::printStackTrace);
            }
        }
    }

    private static void print(String verdict, TestIdentifier test, String why) {
        String reason = why.replaceAll("\\s+", " ");
        System.out.println(verdict + " " + name(test)
            + (reason.isEmpty() ? "" : " # " + reason.substring(0, Math.min(200, reason.length()))));
    }

    private static String name(TestIdentifier test) {
        String name = test.getSource()
            .map(source -> source instanceof MethodSource method
                ? method.getClassName().replaceFirst(".*\\.", "") + " " + method.getMethodName() : null)
            .orElse(test.getDisplayName());
        String run = test.getUniqueId().replaceFirst(".*test-template-invocation:#(\\d+)]$", "$1");
        return run.equals("1") || run.length() > 3 ? name : name + "#" + run;
    }
}
