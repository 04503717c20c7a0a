package io.lockgate.spark.files;

import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.WeakHashMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.SparkContext;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.util.SerializableConfiguration;
import scala.reflect.ClassTag$;

/**
 * The Hadoop configurations of sessions as executors have them. One is sent again only when it is
 * not among the last: sending it takes longer than planning a query of one row.
 *
 * <p>Sessions of one server differ in their settings, and take turns. A single statement asks for
 * two of them if it is planned in its own session and started by a thread with another.
 */
public final class SentConfiguration {
  /** More than a server's sessions that differ in a moment; one takes some hundred kilobytes. */
  private static final int MOST = 32;

  /** By their entries; the one that was asked for the longest time ago leaves first. */
  private static final class Sent
      extends LinkedHashMap<Map<String, String>, Broadcast<SerializableConfiguration>> {
    private static final long serialVersionUID = 1L;

    Sent() {
      super(MOST, 0.75f, true);
    }

    @Override
    protected boolean removeEldestEntry(
        Map.Entry<Map<String, String>, Broadcast<SerializableConfiguration>> eldest) {
      return size() > MOST;
    }
  }

  private static final Map<SparkContext, Sent> SENT = new WeakHashMap<>();

  private SentConfiguration() {}

  public static Broadcast<SerializableConfiguration> of(SparkSession spark) {
    Configuration conf = spark.sessionState().newHadoopConf();
    Map<String, String> entries = new HashMap<>();
    conf.forEach(entry -> entries.put(entry.getKey(), entry.getValue()));
    SparkContext context = spark.sparkContext();
    synchronized (SENT) {
      return SENT.computeIfAbsent(context, any -> new Sent())
          .computeIfAbsent(entries, any -> sent(context, conf));
    }
  }

  private static Broadcast<SerializableConfiguration> sent(
      SparkContext context, Configuration conf) {
    return context.broadcast(
        new SerializableConfiguration(conf),
        ClassTag$.MODULE$.apply(SerializableConfiguration.class));
  }
}
