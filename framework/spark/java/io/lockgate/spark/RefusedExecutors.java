package io.lockgate.spark;

import io.lockgate.spark.bridge.ConnectorVersion;
import java.util.HashSet;
import java.util.Set;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerExecutorAdded;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;
import org.apache.spark.scheduler.SparkListenerJobEnd;
import org.apache.spark.scheduler.SparkListenerJobStart;
import org.apache.spark.scheduler.SparkListenerTaskStart;

/**
 * Ends the jobs of an application whose executors have no connector jar, or another one than the
 * driver: Spark would start executors again and again, and the jobs would wait for ever.
 */
final class RefusedExecutors extends SparkListener {
  /** How many executors in a row are refused, with none that works, until jobs are ended. */
  private static final int ENOUGH = 2;

  private final SparkContext context;
  private final Set<String> executors = new HashSet<>();
  private final Set<Integer> jobs = new HashSet<>();
  private int refused;
  private String fault;

  RefusedExecutors(SparkContext context) {
    this.context = context;
  }

  @Override
  public void onExecutorAdded(SparkListenerExecutorAdded event) {
    executors.add(event.executorId());
  }

  @Override
  public void onTaskStart(SparkListenerTaskStart event) {
    refused = 0;
  }

  @Override
  public void onExecutorRemoved(SparkListenerExecutorRemoved event) {
    executors.remove(event.executorId());
    String found = fault(event.reason());
    if (found != null) {
      fault = found;
      refused++;
      jobs.forEach(this::end);
    }
  }

  @Override
  public void onJobStart(SparkListenerJobStart event) {
    jobs.add(event.jobId());
    end(event.jobId());
  }

  @Override
  public void onJobEnd(SparkListenerJobEnd event) {
    jobs.remove(event.jobId());
  }

  private void end(int job) {
    if (refused >= ENOUGH && executors.isEmpty()) {
      context.cancelJob(job, fault);
    }
  }

  /** What an executor lacks that has ended for this reason, or null. */
  private static String fault(String reason) {
    int mismatch = reason.indexOf("VersionMismatchError");
    if (mismatch >= 0) {
      return reason.substring(mismatch);
    }
    // What Spark says where it does not find the class.
    return reason.endsWith(" " + LockgatePlugin.class.getName())
        ? "VersionMismatchError: executors have no connector jar, and the driver has "
            + ConnectorVersion.told().get("jar")
            + ": start the application with --jars and the path that `lockgate jar` prints, which"
            + " brings the jar to executors"
        : null;
  }
}
