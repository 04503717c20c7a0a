package io.lockgate.spark.scan;

import io.lockgate.spark.messages.ColumnEstimateJson;
import io.lockgate.spark.messages.PlanAnswer;
import java.util.HashMap;
import java.util.List;
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

  static Map<NamedReference, ColumnStatistics> of(
      Map<String, ColumnEstimateJson> columns, StructType schema) {
    Map<NamedReference, ColumnStatistics> out = new HashMap<>();
    columns.forEach(
        (name, estimate) ->
            out.put(
                LoadedTable.references(List.of(name))[0],
                new Estimate(estimate, schema.apply(name).dataType())));
    return out;
  }

  /** Sizes of a plan, null where nothing is planned; without {@code schema} none of columns. */
  record OfPlan(PlanAnswer plan, StructType schema) implements Statistics {
    @Override
    public OptionalLong sizeInBytes() {
      return plan == null ? OptionalLong.empty() : OptionalLong.of(plan.bytes());
    }

    @Override
    public OptionalLong numRows() {
      return plan == null ? OptionalLong.empty() : OptionalLong.of(plan.rows());
    }

    @Override
    public Map<NamedReference, ColumnStatistics> columnStats() {
      return schema == null || plan == null || plan.columns() == null
          ? Map.of()
          : of(plan.columns(), schema);
    }
  }

  private record Estimate(ColumnEstimateJson estimate, DataType type) implements ColumnStatistics {
    private Optional<Object> bound(Long value) {
      if (value == null) {
        return Optional.empty();
      }
      return Optional.of(
          type instanceof DecimalType decimal
              ? Decimal.apply(value, decimal.precision(), decimal.scale())
              : value);
    }

    @Override
    public OptionalLong nullCount() {
      return OptionalLong.of(estimate.nulls());
    }

    @Override
    public OptionalLong distinctCount() {
      return estimate.distinct() == null
          ? OptionalLong.empty()
          : OptionalLong.of(estimate.distinct());
    }

    @Override
    public Optional<Object> min() {
      return bound(estimate.min());
    }

    @Override
    public Optional<Object> max() {
      return bound(estimate.max());
    }
  }
}
