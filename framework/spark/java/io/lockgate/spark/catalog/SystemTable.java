package io.lockgate.spark.catalog;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.bridge.Values;
import io.lockgate.spark.files.batches.EarlyAnswer;
import io.lockgate.spark.files.batches.LateRow;
import io.lockgate.spark.files.batches.Pages;
import io.lockgate.spark.scan.LoadedTable;
import io.lockgate.spark.scan.MicroBatch;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.Set;
import java.util.function.Supplier;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogV2Util;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.read.LocalScan;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * A table such as {@code t$pin} whose rows Python makes each time a query (or micro-batch) is
 * planned.
 *
 * <p>Few rows are the driver's, so that reading them takes no job; tasks read many. A single row is
 * asked for when it is read, not when a plan is only shown. A stream runs everything that it plans:
 * it asks for a single row early, while Spark plans the rest.
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
  @SuppressWarnings("deprecation") // Spark before 4.1 asks for it
  public StructType schema() {
    return CatalogV2Util.v2ColumnsToStructType(columns());
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
    return single ? () -> Single.of(name, schema, ask) : new Builder(name, schema, ask);
  }

  /** The question for the rows, without the micro-batch that reads them. */
  public ObjectNode question(CaseInsensitiveStringMap options) {
    ObjectNode ask = request.deepCopy();
    String table = ask.get("name").asText();
    ObjectNode given = Bridge.JSON.valueToTree(LoadedTable.given(options, ask, table));
    // VERSION AS OF, as the option that says the same.
    selects.properties().forEach(option -> given.set(option.getKey(), option.getValue()));
    ask.set("options", given);
    return ofColumns(ask, schema);
  }

  /** Tells whether the table is one value: a row of one column. */
  public boolean isSingleValue() {
    return single && schema.length() == 1;
  }

  public StructType rowType() {
    return schema;
  }

  private static ObjectNode ofColumns(ObjectNode question, StructType schema) {
    ArrayNode columns = question.putArray("columns");
    Arrays.stream(schema.fieldNames()).forEach(columns::add);
    return question;
  }

  private static JsonNode ask(ObjectNode question) {
    ObjectNode ask = question.deepCopy();
    MicroBatch.put(ask, SparkSession.active().sparkContext());
    return Bridge.ask("system.rows", ask);
  }

  private static final class Builder implements SupportsPushDownRequiredColumns {
    private final String name;
    private final ObjectNode request;
    private StructType schema;

    Builder(String name, StructType schema, ObjectNode request) {
      this.name = name;
      this.schema = schema;
      this.request = request;
    }

    /** Keeps a column where none is wanted, for rows to be counted by. */
    @Override
    public void pruneColumns(StructType required) {
      schema = required.isEmpty() ? new StructType(new StructField[] {schema.apply(0)}) : required;
    }

    /** Spark asks for a scan once for each plan, so in a stream once for each micro-batch. */
    @Override
    public Scan build() {
      JsonNode answer = ask(ofColumns(request, schema));
      List<byte[]> pages = new ArrayList<>();
      answer.get("pages").forEach(page -> pages.add(Base64.getDecoder().decode(page.asText())));
      return pages.isEmpty()
          ? new Few(name, schema, Values.rowsFromJson(answer.get("rows"), schema))
          : new Pages(name, schema, pages);
    }
  }

  private record Few(String name, StructType readSchema, InternalRow[] rows) implements LocalScan {
    @Override
    public String description() {
      return name;
    }
  }

  private record Single(
      String name, StructType schema, ObjectNode request, EarlyAnswer<InternalRow> early)
      implements LocalScan {
    static Single of(String name, StructType schema, ObjectNode request) {
      boolean early = MicroBatch.isPlanned(SparkSession.active().sparkContext());
      Supplier<InternalRow> row = () -> first(schema, request);
      return new Single(name, schema, request, early ? EarlyAnswer.of(row) : null);
    }

    @Override
    public StructType readSchema() {
      return schema;
    }

    @Override
    public String description() {
      return name;
    }

    @Override
    public InternalRow[] rows() {
      return new InternalRow[] {new LateRow(schema.length(), request, this::first)};
    }

    private InternalRow first() {
      return early == null ? first(schema, request) : early.get();
    }

    private static InternalRow first(StructType schema, ObjectNode request) {
      return Values.rowsFromJson(ask(request).get("rows"), schema)[0];
    }
  }
}
