import java.io.ByteArrayOutputStream;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collections;
import java.util.List;
import org.apache.paimon.fileindex.FileIndexFormat;
import org.apache.paimon.fileindex.FileIndexPredicate;
import org.apache.paimon.fileindex.FileIndexResult;
import org.apache.paimon.fileindex.FileIndexWriter;
import org.apache.paimon.fileindex.FileIndexer;
import org.apache.paimon.fileindex.bitmap.BitmapIndexResult;
import org.apache.paimon.options.Options;
import org.apache.paimon.predicate.Predicate;
import org.apache.paimon.predicate.PredicateBuilder;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.paimon.types.DataType;
import org.apache.paimon.types.DataTypeJsonParser;
import org.apache.paimon.types.RowType;

/** Paimon's file indexes of one column: written from values, and asked by filters. */
final class Indexes {
  private Indexes() {}

  /** Returns the container with an index of a column named c, as Base64. */
  static String write(JsonNode ask) throws Exception {
    DataType type = DataTypeJsonParser.parseDataType(ask.get("type"));
    Options options = new Options();
    ask.get("options")
        .fields()
        .forEachRemaining(e -> options.set(e.getKey(), e.getValue().asText()));
    String kind = ask.get("kind").textValue();
    FileIndexWriter writer = FileIndexer.create(kind, type, options).createWriter();
    for (JsonNode value : ask.get("values")) {
      writer.writeRecord(Values.value(value, type));
    }
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (FileIndexFormat.Writer container = FileIndexFormat.createWriter(bytes)) {
      container.writeColumnIndexes(
          Collections.singletonMap("c", Collections.singletonMap(kind, writer.serializedBytes())));
    }
    return Base64.getEncoder().encodeToString(bytes.toByteArray());
  }

  /** Returns for each filter the rows that a container leaves, or whether it leaves any. */
  static List<Object> answers(JsonNode ask) throws Exception {
    DataType type = DataTypeJsonParser.parseDataType(ask.get("type"));
    RowType row = RowType.of(new DataType[] {type}, new String[] {"c"});
    byte[] data = Base64.getDecoder().decode(ask.get("container").textValue());
    List<Object> answers = new ArrayList<>();
    for (JsonNode filter : ask.get("filters")) {
      try (FileIndexPredicate asked = new FileIndexPredicate(data, row)) {
        answers.add(answer(asked.evaluate(filter(new PredicateBuilder(row), filter, type))));
      }
    }
    return answers;
  }

  private static Object answer(FileIndexResult result) throws Exception {
    if (!(result instanceof BitmapIndexResult)) {
      return result.remain();
    }
    List<Integer> rows = new ArrayList<>();
    ((BitmapIndexResult) result).get().iterator().forEachRemaining(rows::add);
    return rows;
  }

  private static Predicate filter(PredicateBuilder builder, JsonNode filter, DataType type) {
    List<Object> literals = new ArrayList<>();
    filter.get(1).forEach(each -> literals.add(Values.value(each, type)));
    switch (filter.get(0).textValue()) {
      case "=":
        return builder.equal(0, literals.get(0));
      case "<>":
        return builder.notEqual(0, literals.get(0));
      case "<":
        return builder.lessThan(0, literals.get(0));
      case "<=":
        return builder.lessOrEqual(0, literals.get(0));
      case ">":
        return builder.greaterThan(0, literals.get(0));
      case ">=":
        return builder.greaterOrEqual(0, literals.get(0));
      case "IN":
        return builder.in(0, literals);
      case "IS_NULL":
        return builder.isNull(0);
      default:
        return builder.isNotNull(0);
    }
  }
}
