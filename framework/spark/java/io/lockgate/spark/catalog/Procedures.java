package io.lockgate.spark.catalog;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.bridge.Values;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.procedures.BoundProcedure;
import org.apache.spark.sql.connector.catalog.procedures.ProcedureParameter;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.connector.read.LocalScan;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/** Procedures that Python describes and runs. */
public final class Procedures {
  private Procedures() {}

  /**
   * DESCRIBE PROCEDURE shows only name and description, so the description ends with the signature.
   */
  private static String describe(JsonNode spec) {
    StringBuilder out = new StringBuilder(spec.get("description").asText());
    out.append(out.length() == 0 ? "" : " ")
        .append("Signature: ")
        .append(spec.get("signature").asText());
    String separator = " -> (";
    for (JsonNode column : spec.get("result")) {
      out.append(separator)
          .append(column.get("name").asText())
          .append(' ')
          .append(column.get("type").asText());
      separator = ", ";
    }
    return out.append(')').toString();
  }

  public record Unbound(ObjectNode request, JsonNode spec) implements UnboundProcedure {
    @Override
    public String name() {
      return spec.get("name").asText();
    }

    @Override
    public String description() {
      return describe(spec);
    }

    @Override
    public BoundProcedure bind(StructType input) {
      return new Bound(request, spec);
    }

    @Override
    public String toString() {
      return name();
    }
  }

  record Bound(ObjectNode request, JsonNode spec) implements BoundProcedure {
    @Override
    public String name() {
      return spec.get("name").asText();
    }

    @Override
    public String description() {
      return describe(spec);
    }

    @Override
    public boolean isDeterministic() {
      return false;
    }

    @Override
    public ProcedureParameter[] parameters() {
      ProcedureParameter[] out = new ProcedureParameter[spec.get("parameters").size()];
      for (int i = 0; i < out.length; i++) {
        JsonNode parameter = spec.get("parameters").get(i);
        DataType type = DataType.fromDDL(parameter.get("type").asText());
        ProcedureParameter.Builder builder =
            ProcedureParameter.in(parameter.get("name").asText(), type);
        if (!parameter.get("default").isNull()) {
          builder.defaultValue(parameter.get("default").asText());
        }
        builder.comment(parameter.get("comment").asText());
        out[i] = builder.build();
      }
      return out;
    }

    @Override
    public Iterator<Scan> call(InternalRow arguments) {
      StructType input = new StructType();
      for (ProcedureParameter parameter : parameters()) {
        input = input.add(parameter.name(), parameter.dataType());
      }
      ObjectNode ask = request.deepCopy();
      ask.set("arguments", Values.rowToJson(arguments, input));
      JsonNode rows = Bridge.ask("procedure.call", ask).get("rows");
      StructType output = new StructType();
      for (JsonNode column : spec.get("result")) {
        output =
            output.add(column.get("name").asText(), DataType.fromDDL(column.get("type").asText()));
      }
      return List.<Scan>of(new Result(output, Values.rowsFromJson(rows, output))).iterator();
    }

    @Override
    public String toString() {
      return name();
    }
  }

  private record Result(StructType readSchema, InternalRow[] rows) implements LocalScan {}
}
