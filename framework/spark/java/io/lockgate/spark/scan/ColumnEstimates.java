package io.lockgate.spark.scan;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.colstats.ColumnStatistics;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.StructType;

/**
 * Estimates of columns for Spark's optimizer, made only if it is cost-based, because they look at
 * every file.
 */
final class ColumnEstimates {
  private ColumnEstimates() {}

  /** Tells whether the session's optimizer uses statistics of columns. */
  static boolean areWanted() {
    SQLConf conf = SQLConf.get();
    return conf.cboEnabled() || conf.planStatsEnabled();
  }

  static Map<NamedReference, ColumnStatistics> of(JsonNode columns, StructType schema) {
    Map<NamedReference, ColumnStatistics> out = new HashMap<>();
    columns
        .properties()
        .forEach(
            entry ->
                out.put(
                    LoadedTable.references(java.util.List.of(entry.getKey()))[0],
                    new Estimate(entry.getValue(), schema.apply(entry.getKey()).dataType())));
    return out;
  }

  /** Sizes of a plan, null where nothing is planned; without {@code schema} none of columns. */
  record OfPlan(JsonNode plan, StructType schema) implements Statistics {
    private OptionalLong number(String name) {
      return plan == null ? OptionalLong.empty() : OptionalLong.of(plan.get(name).asLong());
    }

    @Override
    public OptionalLong sizeInBytes() {
      return number("bytes");
    }

    @Override
    public OptionalLong numRows() {
      return number("rows");
    }

    @Override
    public Map<NamedReference, ColumnStatistics> columnStats() {
      return schema == null || plan == null || plan.get("columns").isNull()
          ? Map.of()
          : of(plan.get("columns"), schema);
    }
  }

  private record Estimate(JsonNode estimate, DataType type) implements ColumnStatistics {
    private OptionalLong number(String name) {
      return estimate.get(name).isNull()
          ? OptionalLong.empty()
          : OptionalLong.of(estimate.get(name).asLong());
    }

    private Optional<Object> bound(String name) {
      if (estimate.get(name).isNull()) {
        return Optional.empty();
      }
      long value = estimate.get(name).asLong();
      return Optional.of(
          type instanceof DecimalType decimal
              ? Decimal.apply(value, decimal.precision(), decimal.scale())
              : (Object) value);
    }

    @Override
    public OptionalLong nullCount() {
      return number("nulls");
    }

    @Override
    public OptionalLong distinctCount() {
      return number("distinct");
    }

    @Override
    public Optional<Object> min() {
      return bound("min");
    }

    @Override
    public Optional<Object> max() {
      return bound("max");
    }
  }
}
