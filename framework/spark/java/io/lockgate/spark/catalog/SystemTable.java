package io.lockgate.spark.catalog;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lockgate.spark.batches.EarlyAnswer;
import io.lockgate.spark.batches.LateRow;
import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.bridge.Values;
import io.lockgate.spark.scan.LoadedTable;
import io.lockgate.spark.scan.MicroBatch;
import java.util.Set;
import java.util.function.Supplier;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.read.LocalScan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * A table such as {@code t$pin} whose few rows Python makes each time a query (or micro-batch) is
 * planned.
 *
 * <p>They are the driver's, so that reading them takes no job. A single row is asked for when it is
 * read, not when a plan is only shown. A stream runs everything that it plans: it asks for a single
 * row early, while Spark plans the rest.
 */
public final class SystemTable implements SupportsRead {
  private final ObjectNode request;
  private final String name;
  private final StructType schema;
  private final boolean single;
  private final JsonNode selects;

  public SystemTable(ObjectNode request, JsonNode spec) {
    this.request = request;
    this.name = spec.get("name").asText();
    this.schema = Values.schemaFromJson(spec.get("schema"));
    this.single = spec.get("single_row").asBoolean();
    this.selects = spec.get("selects");
  }

  /** The name of the table, in the words of a request. */
  public ObjectNode request() {
    return request.deepCopy();
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
    ObjectNode ask = question(options);
    return () -> Rows.of(name, schema, ask, single);
  }

  /** The question for the rows, without the micro-batch that reads them. */
  public ObjectNode question(CaseInsensitiveStringMap options) {
    ObjectNode ask = request.deepCopy();
    ObjectNode given = Bridge.JSON.valueToTree(LoadedTable.given(options));
    // VERSION AS OF, as the option that says the same.
    selects.properties().forEach(option -> given.set(option.getKey(), option.getValue()));
    ask.set("options", given);
    return ask;
  }

  /** Tells whether the table is one value: a row of one column. */
  public boolean isSingleValue() {
    return single && schema.length() == 1;
  }

  public StructType rowType() {
    return schema;
  }

  private record Rows(
      String name,
      StructType schema,
      ObjectNode request,
      boolean single,
      EarlyAnswer<InternalRow> early)
      implements LocalScan {
    static Rows of(String name, StructType schema, ObjectNode request, boolean single) {
      boolean early = single && MicroBatch.isPlanned(SparkSession.active().sparkContext());
      Supplier<InternalRow> row = () -> ask(schema, request)[0];
      return new Rows(name, schema, request, single, early ? EarlyAnswer.of(row) : null);
    }

    @Override
    public StructType readSchema() {
      return schema;
    }

    @Override
    public String description() {
      return name;
    }

    /** Spark asks for them once for each plan, so in a stream once for each micro-batch. */
    @Override
    public InternalRow[] rows() {
      return single
          ? new InternalRow[] {new LateRow(schema.length(), request, this::first)}
          : ask(schema, request);
    }

    private InternalRow first() {
      return early == null ? ask(schema, request)[0] : early.get();
    }

    private static InternalRow[] ask(StructType schema, ObjectNode request) {
      ObjectNode ask = request.deepCopy();
      MicroBatch.put(ask, SparkSession.active().sparkContext());
      return Values.rowsFromJson(Bridge.ask("system.rows", ask).get("rows"), schema);
    }
  }
}
