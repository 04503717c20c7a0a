package io.lockgate.spark.rules;

import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.execution.streaming.Sink;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.CreatableRelationProvider;
import org.apache.spark.sql.sources.InsertableRelation;
import org.apache.spark.sql.sources.SchemaRelationProvider;
import org.apache.spark.sql.sources.StreamSinkProvider;
import org.apache.spark.sql.streaming.OutputMode;
import org.apache.spark.sql.types.StructType;
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
