package io.lockgate.spark.rules.results;

import io.lockgate.spark.bridge.Bridge;
import org.apache.spark.network.util.JavaUtils;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.internal.SQLConf;

/** The settings of kept results. */
final class ResultSettings {
  private static final String IS_ON = "spark.lockgate.result.cache";
  private static final String SIZE = "spark.lockgate.result.cache.size";
  private static final String DEFAULT_SIZE = "64m";
  private static final String BATCH = "streaming.sql.batchId";

  /** Set where a query is planned only to be described. */
  private static final ThreadLocal<Boolean> DESCRIBES = ThreadLocal.withInitial(() -> false);

  private ResultSettings() {}

  /** Tells whether the session keeps results; a micro-batch never does. */
  static boolean isOn() {
    String text = SQLConf.get().getConfString(IS_ON, "false").trim();
    if (!text.equalsIgnoreCase("true") && !text.equalsIgnoreCase("false")) {
      throw Bridge.failure(IS_ON + " is '" + text + "': set it to true or false");
    }
    return text.equalsIgnoreCase("true")
        && !DESCRIBES.get()
        && SparkSession.active().sparkContext().getLocalProperty(BATCH) == null;
  }

  /** The bytes that all results together may take: the application's, since all sessions share. */
  static long size() {
    String text = SparkSession.active().sparkContext().getConf().get(SIZE, DEFAULT_SIZE);
    try {
      return JavaUtils.byteStringAsBytes(text);
    } catch (NumberFormatException malformed) {
      throw Bridge.failure(SIZE + " is '" + text + "': give a size such as " + DEFAULT_SIZE);
    }
  }

  static void describe(boolean describes) {
    DESCRIBES.set(describes);
  }
}
