package io.lockgate.spark.rules;

import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
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
 * Sinks of every interface of Spark's that nothing in the connector knows, under the names of sinks
 * that keep nothing. Rows that reach one are an error.
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

  /** A sink of the second interface of data sources. */
  public static final class New implements TableProvider {
    @Override
    public StructType inferSchema(CaseInsensitiveStringMap options) {
      return new StructType();
    }

    @Override
    public Table getTable(
        StructType schema, Transform[] partitioning, Map<String, String> properties) {
      return new NamedAsNothing(schema);
    }
  }

  private record NamedAsNothing(StructType kept) implements SupportsWrite {
    @Override
    public String name() {
      return "noop-table";
    }

    @Override
    @SuppressWarnings("deprecation") // the one method that every version of Spark asks for
    public StructType schema() {
      return kept;
    }

    @Override
    public Set<TableCapability> capabilities() {
      return Set.of(
          TableCapability.BATCH_WRITE,
          TableCapability.STREAMING_WRITE,
          TableCapability.TRUNCATE,
          TableCapability.ACCEPT_ANY_SCHEMA);
    }

    @Override
    public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
      throw new IllegalStateException(REACHED);
    }
  }
}
