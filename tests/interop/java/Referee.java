import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.paimon.catalog.Catalog;
import org.apache.paimon.catalog.CatalogContext;
import org.apache.paimon.catalog.CatalogFactory;
import org.apache.paimon.catalog.Identifier;
import org.apache.paimon.data.GenericRow;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.disk.IOManager;
import org.apache.paimon.io.DataFileMeta;
import org.apache.paimon.options.Options;
import org.apache.paimon.predicate.Predicate;
import org.apache.paimon.predicate.PredicateBuilder;
import org.apache.paimon.reader.RecordReader;
import org.apache.paimon.schema.Schema;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.table.Table;
import org.apache.paimon.table.sink.BatchTableCommit;
import org.apache.paimon.table.sink.BatchTableWrite;
import org.apache.paimon.table.sink.BatchWriteBuilder;
import org.apache.paimon.table.source.DataSplit;
import org.apache.paimon.table.source.ReadBuilder;
import org.apache.paimon.table.source.Split;
import org.apache.paimon.types.DataType;
import org.apache.paimon.types.RowKind;
import org.apache.paimon.types.RowType;
import org.apache.paimon.utils.JsonSerdeUtil;

/**
 * Paimon's own Java core on the tables of warehouses; a line of JSON asks, a line answers. Its
 * argument is a scratch folder.
 */
public final class Referee {
  private static final ObjectMapper JSON = JsonSerdeUtil.OBJECT_MAPPER_INSTANCE;
  private static IOManager io;

  private Referee() {}

  public static void main(String[] arguments) throws Exception {
    PrintStream answers = System.out;
    System.setOut(System.err);
    io = IOManager.create(arguments[0]);
    BufferedReader lines =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      Map<String, Object> answer = new HashMap<>();
      try {
        answer.put("ok", answer(JSON.readTree(line)));
      } catch (Throwable error) {
        answer.put("error", error.toString());
        error.printStackTrace();
      }
      answers.write((JSON.writeValueAsString(answer) + "\n").getBytes(StandardCharsets.UTF_8));
      answers.flush();
    }
  }

  private static Object answer(JsonNode ask) throws Exception {
    Options options = new Options();
    options.set("warehouse", ask.get("warehouse").textValue());
    try (Catalog catalog = CatalogFactory.createCatalog(CatalogContext.create(options))) {
      Identifier name = Identifier.fromString(ask.get("table").textValue());
      switch (ask.get("op").textValue()) {
        case "create":
          catalog.createDatabase(name.getDatabaseName(), true);
          catalog.createTable(
              name, JsonSerdeUtil.fromJson(ask.get("schema").toString(), Schema.class), false);
          return null;
        case "options":
          return Upkeep.options();
        case "write_index":
          return Indexes.write(ask);
        case "ask_index":
          return Indexes.answers(ask);
        case "alter":
          catalog.alterTable(name, Evolution.changes(ask.get("changes")), false);
          return null;
        default:
          return of(catalog.getTable(name).copy(strings(ask.path("options"))), ask);
      }
    }
  }

  private static Object of(Table table, JsonNode ask) throws Exception {
    switch (ask.get("op").textValue()) {
      case "read":
        return read(table, ask);
      case "write":
        return write((FileStoreTable) table, ask);
      case "schema":
        return JSON.readTree(((FileStoreTable) table).schema().toString());
      case "files":
        return files((FileStoreTable) table);
      case "buckets":
        return buckets(table, ask);
      case "compact":
        Upkeep.compact((FileStoreTable) table, io);
        return null;
      case "index":
        Upkeep.index((FileStoreTable) table);
        return null;
      case "expire":
        return Upkeep.expire((FileStoreTable) table, ask.get("retain").intValue());
      case "follow":
        return Changes.follow((FileStoreTable) table, ask.get("from").longValue());
      case "expire_changelogs":
        return Changes.expire((FileStoreTable) table, ask.get("retain").intValue());
      case "orphans":
        return Upkeep.orphans((FileStoreTable) table, ask.get("older_than").longValue());
      case "refer":
        Upkeep.refer((FileStoreTable) table, ask);
        return null;
      default:
        throw new IllegalArgumentException("no such question: " + ask.get("op"));
    }
  }

  private static Object read(Table table, JsonNode ask) throws Exception {
    ReadBuilder builder = table.newReadBuilder();
    RowType type = table.rowType();
    if (ask.has("filter")) {
      builder.withFilter(filter(type, ask.get("filter")));
    }
    if (ask.has("columns")) {
      int[] chosen = new int[ask.get("columns").size()];
      for (int index = 0; index < chosen.length; index++) {
        chosen[index] = type.getFieldIndex(ask.get("columns").get(index).textValue());
      }
      type = type.project(chosen);
      builder.withProjection(chosen);
    }
    List<List<Object>> rows = new ArrayList<>();
    int files = 0;
    for (Split split : builder.newScan().plan().splits()) {
      files += split instanceof DataSplit ? ((DataSplit) split).dataFiles().size() : 0;
      RowType read = type;
      try (RecordReader<InternalRow> reader =
          builder.newRead().executeFilter().createReader(split)) {
        reader.forEachRemaining(row -> rows.add(Values.json(row, read)));
      }
    }
    Map<String, Object> found = new HashMap<>();
    found.put("columns", type.getFieldNames());
    found.put("rows", rows);
    found.put("files", files);
    return found;
  }

  private static Predicate filter(RowType type, JsonNode json) {
    PredicateBuilder builder = new PredicateBuilder(type);
    int column = builder.indexOf(json.get(1).textValue());
    DataType of = type.getTypeAt(column);
    Object value = json.size() > 2 ? Values.value(json.get(2), of) : null;
    switch (json.get(0).textValue()) {
      case "=":
        return builder.equal(column, value);
      case "<":
        return builder.lessThan(column, value);
      case ">":
        return builder.greaterThan(column, value);
      case "is null":
        return builder.isNull(column);
      default:
        throw new IllegalArgumentException("no such filter: " + json);
    }
  }

  private static Object write(FileStoreTable table, JsonNode ask) throws Exception {
    BatchWriteBuilder builder = table.newBatchWriteBuilder();
    if (ask.has("overwrite")) {
      builder.withOverwrite(strings(ask.get("overwrite")));
    }
    try (BatchTableWrite write = builder.newWrite();
        BatchTableCommit commit = builder.newCommit()) {
      write.withIOManager(io);
      DynamicBuckets buckets = DynamicBuckets.of(table);
      for (int index = 0; index < ask.get("rows").size(); index++) {
        GenericRow row = Values.row(ask.get("rows").get(index), table.rowType());
        if (ask.has("kind")) {
          row.setRowKind(RowKind.fromShortString(ask.get("kind").textValue()));
        }
        if (buckets == null) {
          write.write(row);
        } else {
          buckets.write(write, row);
        }
      }
      commit.commit(write.prepareCommit());
    }
    return table.latestSnapshot().get().id();
  }

  private static Object files(FileStoreTable table) {
    List<Map<String, Object>> files = new ArrayList<>();
    for (Split split : table.newReadBuilder().newScan().plan().splits()) {
      for (DataFileMeta file : ((DataSplit) split).dataFiles()) {
        Map<String, Object> shown = new HashMap<>();
        shown.put("name", file.fileName());
        shown.put("bucket", ((DataSplit) split).bucket());
        shown.put("level", file.level());
        shown.put("rows", file.rowCount());
        shown.put("schema", file.schemaId());
        shown.put("deleted", file.deleteRowCount().orElse(-1L));
        shown.put("sequence", List.of(file.minSequenceNumber(), file.maxSequenceNumber()));
        files.add(shown);
      }
    }
    return files;
  }

  private static Object buckets(Table table, JsonNode ask) throws Exception {
    List<Integer> buckets = new ArrayList<>();
    try (BatchTableWrite write = table.newBatchWriteBuilder().newWrite()) {
      for (JsonNode row : ask.get("rows")) {
        buckets.add(write.getBucket(Values.row(row, table.rowType())));
      }
    }
    return buckets;
  }

  private static Map<String, String> strings(JsonNode json) {
    Map<String, String> strings = new HashMap<>();
    json.fields().forEachRemaining(each -> strings.put(each.getKey(), each.getValue().textValue()));
    return strings;
  }
}
