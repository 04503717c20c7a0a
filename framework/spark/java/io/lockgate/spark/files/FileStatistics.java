package io.lockgate.spark.files;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lockgate.spark.bridge.Values;
import io.lockgate.spark.messages.StatisticsMode;
import java.io.Serializable;
import java.math.RoundingMode;
import java.sql.Timestamp;
import org.apache.hadoop.hive.common.type.HiveDecimal;
import org.apache.orc.BooleanColumnStatistics;
import org.apache.orc.ColumnStatistics;
import org.apache.orc.DateColumnStatistics;
import org.apache.orc.DecimalColumnStatistics;
import org.apache.orc.DoubleColumnStatistics;
import org.apache.orc.IntegerColumnStatistics;
import org.apache.orc.StringColumnStatistics;
import org.apache.orc.TimestampColumnStatistics;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DecimalType;

/** The statistics of one column of one written file, as the manifest wants them. */
public final class FileStatistics {
  private static final JsonNodeFactory NODES = JsonNodeFactory.instance;

  /**
   * Statistics kept of a column in addition to its nulls: bounds or none, of texts at most so many
   * characters.
   */
  public record Mode(boolean bounds, int characters) implements Serializable {
    /** Without a length texts are kept whole, as far as ORC keeps them. */
    public static Mode of(StatisticsMode mode) {
      return new Mode(
          mode.bounds(),
          mode.length() == null ? Integer.MAX_VALUE : Math.toIntExact(mode.length()));
    }
  }

  private FileStatistics() {}

  /**
   * {"min","max","nulls"}; bounds are null where there is none that holds for every value, or none
   * is to be kept.
   */
  public static ObjectNode of(ColumnStatistics statistics, DataType type, long rows, Mode mode) {
    ObjectNode node = NODES.objectNode();
    node.putNull("min").putNull("max").put("nulls", rows - statistics.getNumberOfValues());
    if (mode.bounds() && statistics.getNumberOfValues() > 0) {
      bounds(node, statistics, type, mode);
    }
    return node;
  }

  private static void bounds(
      ObjectNode node, ColumnStatistics statistics, DataType type, Mode mode) {
    if (statistics instanceof IntegerColumnStatistics integers) {
      node.put("min", integers.getMinimum()).put("max", integers.getMaximum());
    } else if (statistics instanceof StringColumnStatistics strings) {
      text(node, strings.getLowerBound(), strings.getUpperBound(), mode.characters());
    } else if (statistics instanceof DoubleColumnStatistics doubles) {
      // ORC's bounds leave NaN out, but its sum does not.
      if (!Double.isNaN(doubles.getSum())) {
        doubles(node, doubles.getMinimum(), doubles.getMaximum());
      }
    } else if (statistics instanceof DateColumnStatistics dates) {
      node.put("min", dates.getMinimumDayOfEpoch()).put("max", dates.getMaximumDayOfEpoch());
    } else if (statistics instanceof TimestampColumnStatistics timestamps) {
      node.put("min", micros(timestamps.getMinimumUTC()))
          .put("max", micros(timestamps.getMaximumUTC()));
    } else if (statistics instanceof DecimalColumnStatistics decimals
        && type instanceof DecimalType decimal) {
      node.set("min", plain(decimals.getMinimum(), decimal.scale()));
      node.set("max", plain(decimals.getMaximum(), decimal.scale()));
    } else if (statistics instanceof BooleanColumnStatistics booleans) {
      node.put("min", booleans.getFalseCount() == 0).put("max", booleans.getTrueCount() > 0);
    }
  }

  /** Bounds between which zeros of either sign lie, or none if one is NaN. */
  static void doubles(ObjectNode node, double min, double max) {
    if (!Double.isNaN(min) && !Double.isNaN(max)) {
      node.set("min", Values.number(min == 0 ? -0.0 : min));
      node.set("max", Values.number(max == 0 ? 0.0 : max));
    }
  }

  private static JsonNode plain(HiveDecimal value, int scale) {
    return NODES.textNode(
        value.bigDecimalValue().setScale(scale, RoundingMode.UNNECESSARY).toPlainString());
  }

  private static long micros(Timestamp timestamp) {
    return Math.floorDiv(timestamp.getTime(), 1000L) * 1_000_000L + timestamp.getNanos() / 1000;
  }

  /**
   * Cuts bounds as Paimon's truncate(n): the lower one is shortened, the upper one rounded up, or
   * neither kept.
   */
  static void text(ObjectNode node, String min, String max, int characters) {
    String upper = roundUp(max, characters);
    if (min != null && upper != null) {
      node.put(
          "min",
          min.substring(
              0,
              min.offsetByCodePoints(
                  0, Math.min(characters, min.codePointCount(0, min.length())))));
      node.put("max", upper);
    }
  }

  private static String roundUp(String max, int characters) {
    if (max == null || max.codePointCount(0, max.length()) <= characters) {
      return max;
    }
    int[] points = max.codePoints().limit(characters).toArray();
    for (int last = characters - 1; last >= 0; last--) {
      int next = points[last] + 1;
      if (next >= Character.MIN_SURROGATE && next <= Character.MAX_SURROGATE) {
        next = Character.MAX_SURROGATE + 1;
      }
      if (Character.isValidCodePoint(next)) {
        points[last] = next;
        return new String(points, 0, last + 1);
      }
    }
    return null;
  }
}
