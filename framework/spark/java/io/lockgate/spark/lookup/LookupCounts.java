package io.lockgate.spark.lookup;

import java.util.HashMap;
import java.util.Map;
import org.apache.spark.SparkContext;
import org.apache.spark.util.AccumulatorV2;

/**
 * Counts of what tasks have asked for and found, by the number (token) of their batch: rows, of
 * these matched, nanoseconds.
 */
public final class LookupCounts extends AccumulatorV2<long[], Map<Long, long[]>> {
  private static final int NUMBERS = 3;
  private static LookupCounts registered;
  private static SparkContext owner;

  private final Map<Long, long[]> counts = new HashMap<>();

  /** The counts of a SparkContext, which all of its lookups share. */
  static synchronized LookupCounts of(SparkContext context) {
    if (owner != context) {
      registered = new LookupCounts();
      owner = context;
      context.register(registered);
    }
    return registered;
  }

  /**
   * Takes what was counted since the last call: for each token a line {@code token rows matched
   * nanoseconds}.
   */
  public static synchronized String take() {
    return registered == null ? "" : registered.taken();
  }

  private synchronized String taken() {
    StringBuilder out = new StringBuilder();
    counts.forEach(
        (token, counted) -> {
          out.append(token);
          for (long each : counted) {
            out.append(' ').append(each);
          }
          out.append('\n');
        });
    counts.clear();
    return out.toString();
  }

  @Override
  public synchronized boolean isZero() {
    return counts.isEmpty();
  }

  @Override
  public synchronized LookupCounts copy() {
    LookupCounts copied = new LookupCounts();
    copied.merge(this);
    return copied;
  }

  @Override
  public synchronized void reset() {
    counts.clear();
  }

  /** Counts {@code token, rows, matched, nanoseconds}. */
  @Override
  public synchronized void add(long[] counted) {
    long[] sums = counts.computeIfAbsent(counted[0], token -> new long[NUMBERS]);
    for (int i = 0; i < NUMBERS; i++) {
      sums[i] += counted[i + 1];
    }
  }

  @Override
  public synchronized void merge(AccumulatorV2<long[], Map<Long, long[]>> other) {
    other
        .value()
        .forEach((token, counted) -> add(new long[] {token, counted[0], counted[1], counted[2]}));
  }

  @Override
  public synchronized Map<Long, long[]> value() {
    return new HashMap<>(counts);
  }
}
