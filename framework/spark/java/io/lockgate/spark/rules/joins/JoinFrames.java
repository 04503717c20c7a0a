package io.lockgate.spark.rules.joins;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.spark.sql.classic.Dataset;

/** The streams that Python is asked to plan a join of at this moment, and its answers. */
public final class JoinFrames {
  private static final AtomicLong NUMBER = new AtomicLong();
  private static final Map<String, Dataset<?>> FRAMES = new ConcurrentHashMap<>();

  private JoinFrames() {}

  /** Offers a stream; answers the name by which Python finds it, until {@link #take}. */
  static String offer(Dataset<?> stream) {
    String name = Long.toString(NUMBER.incrementAndGet());
    FRAMES.put(name, stream);
    return name;
  }

  /** Ends an offer; answers the join that took the stream's place. */
  static Dataset<?> take(String name) {
    return FRAMES.remove(name);
  }

  /** Called by Python: the stream of this name. */
  public static Dataset<?> find(String name) {
    return FRAMES.get(name);
  }

  /** Called by Python: the join takes the stream's place. */
  public static void answer(String name, Dataset<?> joined) {
    FRAMES.replace(name, joined);
  }
}
