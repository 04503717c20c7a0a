package io.lockgate.spark.lineage;

import java.util.LinkedHashMap;
import java.util.Map;

/**
 * The sources of a value: the numbers of source columns, each with a set of kinds.
 *
 * <p>The bits of the kinds are those of Python's {@code EdgeKind}; both read {@code
 * lineage_kinds.json}.
 */
final class Dependencies {
  static final int IDENTITY = 1;
  static final int TRANSFORMATION = 2;
  static final int AGGREGATION = 4;
  static final int CONDITIONAL = 64;
  static final int WINDOW = 128;
  static final int FILTER = 256;
  static final int JOIN = 512;
  static final int GROUP_BY = 1024;
  static final int SORT = 2048;
  static final int OPAQUE = 4096;
  private static final int PLAIN = IDENTITY | TRANSFORMATION | AGGREGATION;
  private static final int MASKED_SHIFT = 3;
  private static final int DIRECT = PLAIN | PLAIN << MASKED_SHIFT;
  private static final int INDIRECT = CONDITIONAL | WINDOW | FILTER | JOIN | GROUP_BY | SORT;

  private final Map<Integer, Integer> kinds = new LinkedHashMap<>();

  static Dependencies on(int column) {
    Dependencies out = new Dependencies();
    out.kinds.put(column, IDENTITY);
    return out;
  }

  /** The kind of a step after which the value can no longer be seen. */
  static int masked(int direct) {
    return direct << MASKED_SHIFT;
  }

  /** Tells whether one of several kinds shows the value. */
  static boolean isPlain(int kinds) {
    return (kinds & PLAIN) != 0;
  }

  Map<Integer, Integer> kinds() {
    return kinds;
  }

  Dependencies add(Dependencies other) {
    other.kinds.forEach(this::add);
    return this;
  }

  void add(int column, int kind) {
    kinds.merge(column, kind, (one, two) -> one | two);
  }

  /** The column that this is a plain copy of, or null. */
  Integer copied() {
    return kinds.size() == 1 && kinds.values().iterator().next() == IDENTITY
        ? kinds.keySet().iterator().next()
        : null;
  }

  boolean isOpaque() {
    return kinds.values().stream().anyMatch(kind -> (kind & OPAQUE) != 0);
  }

  /** The dependencies as they are after one more step of a kind. */
  Dependencies through(int step) {
    if (step == IDENTITY) {
      return this;
    }
    Dependencies out = new Dependencies();
    kinds.forEach((column, kind) -> out.kinds.put(column, after(kind, step)));
    return out;
  }

  private static int after(int kind, int step) {
    if ((step & INDIRECT) != 0) {
      return step;
    }
    int kept = kind & ~DIRECT;
    if (step == OPAQUE) {
      return kept | OPAQUE | TRANSFORMATION;
    }
    boolean masks = step > PLAIN;
    int rank = masks ? step >> MASKED_SHIFT : step;
    int plain = raised(kind & PLAIN, rank);
    int masked = raised(kind >> MASKED_SHIFT & PLAIN, rank);
    return masks ? kept | masked(plain | masked) : kept | plain | masked(masked);
  }

  /** An aggregate of a function is an aggregate, a function of an aggregate too. */
  private static int raised(int direct, int rank) {
    int out = 0;
    for (int kind = IDENTITY; kind <= AGGREGATION; kind <<= 1) {
      out |= (direct & kind) == 0 ? 0 : Math.max(kind, rank);
    }
    return out;
  }
}
