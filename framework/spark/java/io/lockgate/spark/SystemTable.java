package io.lockgate.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Set;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A table such as {@code t$pin} whose few rows Python makes each time a query (or micro-batch) is planned. */
final class SystemTable implements SupportsRead {
  private final ObjectNode request;
  private final String name;
  private final StructType schema;

  SystemTable(ObjectNode request, JsonNode spec) {
    this.request = request;
    this.name = spec.get("name").asText();
    this.schema = Values.schemaFromJson(spec.get("schema"));
  }

  /** Adds the streaming query and the number of the micro-batch that this thread plans, null outside a stream. */
  static void putBatch(ObjectNode ask, SparkContext context) {
    ask.putObject("properties")
        .put("batch_id", context.getLocalProperty("streaming.sql.batchId"))
        .put("query_id", context.getLocalProperty("sql.streaming.queryId"));
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public Column[] columns() {
    return Values.columns(schema);
  }

  @Override
  public Set<TableCapability> capabilities() {
    return Set.of(TableCapability.BATCH_READ);
  }

  @Override
  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    ObjectNode ask = request.deepCopy();
    ask.set("options", Bridge.JSON.valueToTree(options.asCaseSensitiveMap()));
    return () -> new Rows(name, schema, ask);
  }

  private record Rows(String name, StructType schema, ObjectNode request) implements Scan, Batch {
    @Override
    public StructType readSchema() {
      return schema;
    }

    @Override
    public String description() {
      return name;
    }

    @Override
    public Batch toBatch() {
      return this;
    }

    @Override
    public ColumnarSupportMode columnarSupportMode() {
      return ColumnarSupportMode.UNSUPPORTED;
    }

    /** Spark plans this once for each execution, so in a stream once for each micro-batch. */
    @Override
    public InputPartition[] planInputPartitions() {
      ObjectNode ask = request.deepCopy();
      putBatch(ask, SparkSession.active().sparkContext());
      JsonNode rows = Bridge.ask("system.rows", ask).get("rows");
      return new InputPartition[] {new Held(Values.rowsFromJson(rows, schema))};
    }

    @Override
    public PartitionReaderFactory createReaderFactory() {
      return new Held.Factory();
    }
  }

  private record Held(InternalRow[] rows) implements InputPartition {
    private record Factory() implements PartitionReaderFactory {
      @Override
      public PartitionReader<InternalRow> createReader(InputPartition partition) {
        return new Reader(((Held) partition).rows);
      }
    }

    private static final class Reader implements PartitionReader<InternalRow> {
      private final InternalRow[] rows;
      private int at = -1;

      Reader(InternalRow[] rows) {
        this.rows = rows;
      }

      @Override
      public boolean next() {
        return ++at < rows.length;
      }

      @Override
      public InternalRow get() {
        return rows[at];
      }

      @Override
      public void close() {}
    }
  }
}
