package io.lockgate.spark.catalog;

import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.bridge.Values;
import io.lockgate.spark.files.batches.EarlyAnswer;
import io.lockgate.spark.files.batches.LateRow;
import io.lockgate.spark.files.batches.Pages;
import io.lockgate.spark.messages.Operations;
import io.lockgate.spark.messages.SystemRowsAnswer;
import io.lockgate.spark.messages.SystemRowsRequest;
import io.lockgate.spark.messages.SystemSpec;
import io.lockgate.spark.messages.TableRequest;
import io.lockgate.spark.scan.LoadedTable;
import io.lockgate.spark.scan.PlannedBatch;
import java.util.Base64;
import java.util.List;
import java.util.Map;
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
  private final TableRequest request;
  private final SystemSpec spec;
  private final StructType schema;

  public SystemTable(TableRequest request, SystemSpec spec) {
    this.request = request;
    this.spec = spec;
    this.schema = Values.schemaFromJson(spec.schema());
  }

  /** The name of the table, in the words of a request. */
  public TableRequest request() {
    return request;
  }

  @Override
  public String name() {
    return spec.name();
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
    TableRequest named = named(options);
    return spec.singleRow()
        ? () -> Single.of(name(), schema, named)
        : new Builder(name(), schema, named);
  }

  private TableRequest named(CaseInsensitiveStringMap options) {
    Map<String, String> given = LoadedTable.given(options, request, request.name());
    given.putAll(spec.selects()); // VERSION AS OF, as the option that says the same
    return request.withOptions(given);
  }

  /** The request for the rows that a relation with some options reads in this micro-batch. */
  public SystemRowsRequest rowsRequest(CaseInsensitiveStringMap options) {
    return rowsRequest(named(options), schema);
  }

  private static SystemRowsRequest rowsRequest(TableRequest table, StructType schema) {
    return new SystemRowsRequest(
        table, List.of(schema.fieldNames()), PlannedBatch.of(SparkSession.active().sparkContext()));
  }

  /** Tells whether the table is one value: a row of one column. */
  public boolean isSingleValue() {
    return spec.singleRow() && schema.length() == 1;
  }

  public StructType rowType() {
    return schema;
  }

  private static SystemRowsAnswer rows(TableRequest table, StructType schema) {
    return Bridge.ask(Operations.SYSTEM_ROWS, rowsRequest(table, schema));
  }

  private static final class Builder implements SupportsPushDownRequiredColumns {
    private final String name;
    private final TableRequest request;
    private StructType schema;

    Builder(String name, StructType schema, TableRequest request) {
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
      SystemRowsAnswer answer = SystemTable.rows(request, schema);
      List<byte[]> pages = answer.pages().stream().map(Base64.getDecoder()::decode).toList();
      return pages.isEmpty()
          ? new Few(name, schema, Values.rowsFromJson(answer.rows(), schema))
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
      String name, StructType schema, TableRequest request, EarlyAnswer<InternalRow> early)
      implements LocalScan {
    static Single of(String name, StructType schema, TableRequest request) {
      boolean early = PlannedBatch.isPlanned(SparkSession.active().sparkContext());
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

    private static InternalRow first(StructType schema, TableRequest request) {
      return Values.rowsFromJson(SystemTable.rows(request, schema).rows(), schema)[0];
    }
  }
}
