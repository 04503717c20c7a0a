package io.lockgate.spark.files;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.List;
import org.apache.parquet.column.statistics.BooleanStatistics;
import org.apache.parquet.column.statistics.Statistics;
import org.apache.parquet.hadoop.metadata.BlockMetaData;
import org.apache.parquet.hadoop.metadata.ColumnChunkMetaData;
import org.apache.parquet.hadoop.metadata.ColumnPath;
import org.apache.parquet.io.api.Binary;
import org.apache.parquet.schema.LogicalTypeAnnotation;
import org.apache.parquet.schema.LogicalTypeAnnotation.TimestampLogicalTypeAnnotation;
import org.apache.parquet.schema.PrimitiveType;
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DecimalType;

/** The statistics of one column of one written Parquet file, as the manifest wants them. */
public final class ParquetStatistics {
  private static final long MICROS_OF_MILLI = 1000;

  private ParquetStatistics() {}

  /**
   * {"min","max","nulls"} of a column that is not nested, from the row groups of its file; {@code
   * nan} if a value is NaN, which Parquet's bounds may leave out.
   */
  public static ObjectNode of(
      List<BlockMetaData> groups,
      String column,
      DataType type,
      FileStatistics.Mode mode,
      boolean nan) {
    ColumnPath path = ColumnPath.get(column);
    Statistics<?> all = null;
    for (BlockMetaData group : groups) {
      for (ColumnChunkMetaData chunk : group.getColumns()) {
        if (chunk.getPath().equals(path)) {
          Statistics<?> found = chunk.getStatistics();
          if (all == null) {
            all = found.copy();
          } else {
            all.mergeStatistics(found);
          }
        }
      }
    }
    ObjectNode node = JsonNodeFactory.instance.objectNode().putNull("min").putNull("max");
    node.put("nulls", all == null ? 0 : all.getNumNulls());
    if (all != null && mode.bounds() && !nan && all.hasNonNullValue()) {
      bounds(node, all, type, mode);
    }
    return node;
  }

  private static void bounds(
      ObjectNode node, Statistics<?> statistics, DataType type, FileStatistics.Mode mode) {
    PrimitiveType stored = statistics.type();
    PrimitiveTypeName form = stored.getPrimitiveTypeName();
    Object min = statistics.genericGetMin();
    Object max = statistics.genericGetMax();
    if (statistics instanceof BooleanStatistics) {
      node.put("min", (Boolean) min).put("max", (Boolean) max);
    } else if (type instanceof DecimalType decimal) {
      node.put("min", plain(min, decimal.scale())).put("max", plain(max, decimal.scale()));
    } else if (form == PrimitiveTypeName.INT32) {
      node.put("min", (Integer) min).put("max", (Integer) max);
    } else if (form == PrimitiveTypeName.INT64) {
      long unit = unit(stored.getLogicalTypeAnnotation());
      node.put("min", Math.multiplyExact((Long) min, unit))
          .put("max", Math.multiplyExact((Long) max, unit));
    } else if (form == PrimitiveTypeName.FLOAT || form == PrimitiveTypeName.DOUBLE) {
      FileStatistics.doubles(node, ((Number) min).doubleValue(), ((Number) max).doubleValue());
    } else if (form == PrimitiveTypeName.BINARY && !(type instanceof BinaryType)) {
      FileStatistics.text(
          node,
          ((Binary) min).toStringUsingUTF8(),
          ((Binary) max).toStringUsingUTF8(),
          mode.characters());
    }
  }

  /** The number of microseconds in what a timestamp counts; 1 for other numbers. */
  private static long unit(LogicalTypeAnnotation annotation) {
    boolean millis =
        annotation instanceof TimestampLogicalTypeAnnotation timestamp
            && timestamp.getUnit() == LogicalTypeAnnotation.TimeUnit.MILLIS;
    return millis ? MICROS_OF_MILLI : 1;
  }

  private static String plain(Object value, int scale) {
    BigInteger unscaled =
        value instanceof Binary bytes
            ? new BigInteger(bytes.getBytes())
            : BigInteger.valueOf(((Number) value).longValue());
    return new BigDecimal(unscaled, scale).toPlainString();
  }
}
