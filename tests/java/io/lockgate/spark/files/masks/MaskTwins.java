package io.lockgate.spark.files.masks;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.files.Columns;
import io.lockgate.spark.files.FieldWriters;
import io.lockgate.spark.files.OrcTypes;
import io.lockgate.spark.files.Vectors;
import io.lockgate.spark.merge.Conformance;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.hive.ql.exec.vector.ColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.VectorizedRowBatch;
import org.apache.orc.DataMaskDescription;
import org.apache.orc.TypeDescription;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.DataType;

/** Runs the vectors of masks. */
public final class MaskTwins {
  private MaskTwins() {}

  /**
   * What masks leave of the values of each case of a vector, which has a Spark type, a mask and its
   * parameters, as a JSON array of arrays.
   */
  public static String masks(String vector) throws IOException {
    ArrayNode found = Bridge.JSON.createArrayNode();
    for (JsonNode each : Bridge.JSON.readTree(vector)) {
      List<String> parameters = new ArrayList<>();
      ArrayNode rows = Bridge.JSON.createArrayNode();
      each.get("values").forEach(value -> rows.addArray().add(value));
      each.get("parameters").forEach(parameter -> parameters.add(parameter.asText()));
      DataType type = DataType.fromJson(each.get("spark").toString());
      masked(
          type,
          new Description(each.get("mask").asText(), parameters.toArray(String[]::new)),
          Conformance.rows(rows, List.of(type)),
          found.addArray());
    }
    return found.toString();
  }

  private static void masked(
      DataType type, DataMaskDescription mask, List<InternalRow> rows, ArrayNode out) {
    TypeDescription schema = TypeDescription.createStruct().addField("c", OrcTypes.toOrc(type));
    VectorizedRowBatch from = schema.createRowBatch(rows.size());
    VectorizedRowBatch to = schema.createRowBatch(rows.size());
    FieldWriters.ValueWriter writer = FieldWriters.of(type);
    for (int i = 0; i < rows.size(); i++) {
      FieldWriters.write(writer, rows.get(i), 0, from.cols[0], i);
    }
    new Masks()
        .build(mask, schema.getChildren().get(0), inner -> null)
        .maskData(from.cols[0], to.cols[0], 0, rows.size());
    Columns columns = Columns.map(schema, List.of(new Columns.Wanted("c", null, type)), null);
    Vectors.View view = columns.views(new ColumnVector[] {to.cols[0]}, instant -> instant)[0];
    view.setRows(rows.size());
    Conformance.add(out, view, rows.size());
  }

  private record Description(String getName, String[] getParameters)
      implements DataMaskDescription {
    @Override
    public TypeDescription[] getColumns() {
      return new TypeDescription[0];
    }
  }
}
