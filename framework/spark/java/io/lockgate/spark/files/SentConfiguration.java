package io.lockgate.spark.files;

import java.util.HashMap;
import java.util.Map;
import java.util.WeakHashMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.SparkContext;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.util.SerializableConfiguration;
import scala.reflect.ClassTag$;

/**
 * The Hadoop configuration of a session as executors have it. It is sent again only when it has
 * changed: sending it takes longer than planning a query of one row.
 */
public final class SentConfiguration {
  private record Sent(
      Map<String, String> entries, Broadcast<SerializableConfiguration> broadcast) {}

  // The last one of each context.
  private static final Map<SparkContext, Sent> SENT = new WeakHashMap<>();

  private SentConfiguration() {}

  public static Broadcast<SerializableConfiguration> of(SparkSession spark) {
    Configuration conf = spark.sessionState().newHadoopConf();
    Map<String, String> entries = new HashMap<>();
    conf.forEach(entry -> entries.put(entry.getKey(), entry.getValue()));
    synchronized (SENT) {
      Sent last = SENT.get(spark.sparkContext());
      if (last == null || !last.entries().equals(entries)) {
        last =
            new Sent(
                entries,
                spark
                    .sparkContext()
                    .broadcast(
                        new SerializableConfiguration(conf),
                        ClassTag$.MODULE$.apply(SerializableConfiguration.class)));
        SENT.put(spark.sparkContext(), last);
      }
      return last.broadcast();
    }
  }
}
