package io.lockgate.spark.scan;

import io.lockgate.spark.bridge.Values;
import io.lockgate.spark.messages.AggregatesFound;
import io.lockgate.spark.messages.FigureName;
import java.util.Arrays;
import java.util.List;
import java.util.OptionalLong;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.util.CharVarcharUtils;
import org.apache.spark.sql.connector.expressions.aggregate.Aggregation;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.types.StructType;

/** Aggregates that Python answered from metadata: a scan of their few rows, which opens no file. */
final class AggregateScan implements Batch, SupportsReportStatistics, Reported {
  private final String scanId;
  private final String table;
  private final List<FigureName> metrics;
  private final Aggregation aggregation;
  private final AggregatesFound answer;
  private final StructType schema;

  AggregateScan(String scanId, LoadedTable table, Aggregation aggregation, AggregatesFound answer) {
    this.scanId = scanId;
    this.table = table.name();
    this.metrics = table.metrics();
    this.aggregation = aggregation;
    this.answer = answer;
    this.schema =
        CharVarcharUtils.replaceCharVarcharWithStringInSchema(
            Values.schemaFromJson(answer.schema()));
  }

  @Override
  public String scanId() {
    return scanId;
  }

  @Override
  public StructType readSchema() {
    return schema;
  }

  @Override
  public String description() {
    String groups =
        aggregation.groupByExpressions().length == 0
            ? ""
            : " group by=" + Arrays.toString(aggregation.groupByExpressions());
    return table
        + " snapshot="
        + answer.snapshotId()
        + " aggregates="
        + Arrays.toString(aggregation.aggregateExpressions())
        + groups
        + " answered from metadata";
  }

  @Override
  public Batch toBatch() {
    return this;
  }

  @Override
  public ColumnarSupportMode columnarSupportMode() {
    return ColumnarSupportMode.UNSUPPORTED;
  }

  @Override
  public InputPartition[] planInputPartitions() {
    return new InputPartition[] {new Answer(List.of(Values.rowsFromJson(answer.rows(), schema)))};
  }

  @Override
  public PartitionReaderFactory createReaderFactory() {
    return new Readers();
  }

  @Override
  public CustomMetric[] supportedCustomMetrics() {
    return ScanMetrics.of(metrics);
  }

  @Override
  public CustomTaskMetric[] reportDriverMetrics() {
    return ScanMetrics.values(metrics, answer.metrics());
  }

  @Override
  public Statistics estimateStatistics() {
    long rows = answer.rows().size();
    return new Statistics() {
      @Override
      public OptionalLong sizeInBytes() {
        return OptionalLong.of(rows * schema.defaultSize());
      }

      @Override
      public OptionalLong numRows() {
        return OptionalLong.of(rows);
      }
    };
  }

  private record Answer(List<InternalRow> rows) implements InputPartition {}

  private record Readers() implements PartitionReaderFactory {
    @Override
    public PartitionReader<InternalRow> createReader(InputPartition partition) {
      return new Rows(((Answer) partition).rows());
    }
  }

  private static final class Rows implements PartitionReader<InternalRow> {
    private final List<InternalRow> rows;
    private int next = -1;

    Rows(List<InternalRow> rows) {
      this.rows = rows;
    }

    @Override
    public boolean next() {
      return ++next < rows.size();
    }

    @Override
    public InternalRow get() {
      return rows.get(next);
    }

    @Override
    public void close() {}
  }
}
