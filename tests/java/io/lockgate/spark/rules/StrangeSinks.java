package io.lockgate.spark.rules;

import java.util.Arrays;
import java.util.EnumSet;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.connector.catalog.CatalogV2Util;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.connector.write.streaming.StreamingDataWriterFactory;
import org.apache.spark.sql.connector.write.streaming.StreamingWrite;
import org.apache.spark.sql.execution.streaming.Sink;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.CreatableRelationProvider;
import org.apache.spark.sql.sources.InsertableRelation;
import org.apache.spark.sql.sources.SchemaRelationProvider;
import org.apache.spark.sql.sources.StreamSinkProvider;
import org.apache.spark.sql.streaming.OutputMode;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.collection.immutable.Seq;

/**
 * Sinks that nothing in the connector knows, under the name of one that keeps nothing. Rows that
 * reach them are an error.
 */
public final class StrangeSinks {
  private static final String REACHED = "rows have reached the sink";

  private StrangeSinks() {}

  /** A sink of the first interface of data sources. */
  public static final class Old
      implements CreatableRelationProvider, SchemaRelationProvider, StreamSinkProvider {
    @Override
    public BaseRelation createRelation(
        SQLContext context,
        SaveMode mode,
        scala.collection.immutable.Map<String, String> options,
        Dataset<Row> rows) {
      throw new IllegalStateException(REACHED);
    }

    @Override
    public BaseRelation createRelation(
        SQLContext context,
        scala.collection.immutable.Map<String, String> options,
        StructType schema) {
      return new MemorySink(context, schema);
    }

    @Override
    public Sink createSink(
        SQLContext context,
        scala.collection.immutable.Map<String, String> options,
        Seq<String> partitions,
        OutputMode mode) {
      return new Stream();
    }
  }

  /** A sink of the second interface, for batches and streams. */
  public static final class Young implements TableProvider {
    @Override
    public StructType inferSchema(CaseInsensitiveStringMap options) {
      return new StructType().add("id", "long").add("ssn", "string");
    }

    @Override
    public Table getTable(
        StructType schema, Transform[] partitions, Map<String, String> properties) {
      return new NoopTable(schema);
    }
  }

  private static final class NoopTable implements SupportsWrite {
    private final Column[] columns;

    NoopTable(StructType schema) {
      this.columns =
          Arrays.stream(schema.fields())
              .map(field -> Column.create(field.name(), field.dataType()))
              .toArray(Column[]::new);
    }

    @Override
    public String name() {
      return "noop-table";
    }

    @Override
    @SuppressWarnings("deprecation") // Spark before 4.1 asks for it
    public StructType schema() {
      return CatalogV2Util.v2ColumnsToStructType(columns);
    }

    @Override
    public Column[] columns() {
      return columns;
    }

    @Override
    public Set<TableCapability> capabilities() {
      return EnumSet.of(
          TableCapability.BATCH_WRITE,
          TableCapability.STREAMING_WRITE,
          TableCapability.ACCEPT_ANY_SCHEMA);
    }

    @Override
    public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
      return new WriteBuilder() {
        @Override
        public Write build() {
          return new Write() {
            @Override
            public BatchWrite toBatch() {
              throw new IllegalStateException(REACHED);
            }

            @Override
            public StreamingWrite toStreaming() {
              return new YoungStream();
            }
          };
        }
      };
    }
  }

  /** Spark makes one before its physical plan is whole: rows come with the factory. */
  private static final class YoungStream implements StreamingWrite {
    @Override
    public StreamingDataWriterFactory createStreamingWriterFactory(PhysicalWriteInfo info) {
      throw new IllegalStateException(REACHED);
    }

    @Override
    public void commit(long epoch, WriterCommitMessage[] messages) {
      throw new IllegalStateException(REACHED);
    }

    @Override
    public void abort(long epoch, WriterCommitMessage[] messages) {}
  }

  private static final class Stream implements Sink {
    @Override
    public void addBatch(long batch, Dataset<Row> rows) {
      throw new IllegalStateException(REACHED);
    }

    @Override
    public String toString() {
      return "MemorySink";
    }
  }

  private static final class MemorySink extends BaseRelation implements InsertableRelation {
    private final SQLContext context;
    private final StructType schema;

    MemorySink(SQLContext context, StructType schema) {
      this.context = context;
      this.schema = schema;
    }

    @Override
    public SQLContext sqlContext() {
      return context;
    }

    @Override
    public StructType schema() {
      return schema;
    }

    @Override
    public void insert(Dataset<Row> rows, boolean overwrite) {
      throw new IllegalStateException(REACHED);
    }
  }
}
