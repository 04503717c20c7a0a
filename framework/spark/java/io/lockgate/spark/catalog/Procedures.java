package io.lockgate.spark.catalog;

import com.fasterxml.jackson.databind.JsonNode;
import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.bridge.Values;
import io.lockgate.spark.messages.CallRequest;
import io.lockgate.spark.messages.Operations;
import io.lockgate.spark.messages.ParameterSpec;
import io.lockgate.spark.messages.ProcedureSpec;
import io.lockgate.spark.messages.ResultColumn;
import io.lockgate.spark.messages.TableRequest;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.connector.catalog.procedures.BoundProcedure;
import org.apache.spark.sql.connector.catalog.procedures.ProcedureParameter;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.connector.read.LocalScan;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.NumericType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** Procedures that Python describes and runs. */
public final class Procedures {
  private Procedures() {}

  /**
   * DESCRIBE PROCEDURE shows only name and description, so the description ends with the signature.
   */
  private static String describe(ProcedureSpec spec) {
    StringBuilder out = new StringBuilder(spec.description());
    out.append(out.length() == 0 ? "" : " ").append("Signature: ").append(spec.signature());
    String separator = " -> (";
    for (ResultColumn column : spec.result()) {
      out.append(separator).append(column.name()).append(' ').append(column.type());
      separator = ", ";
    }
    return out.append(')').toString();
  }

  public record Unbound(TableRequest request, ProcedureSpec spec) implements UnboundProcedure {
    @Override
    public String name() {
      return spec.name();
    }

    @Override
    public String description() {
      return describe(spec);
    }

    @Override
    public BoundProcedure bind(StructType input) {
      return new Bound(request, spec, input);
    }

    @Override
    public String toString() {
      return name();
    }
  }

  record Bound(TableRequest request, ProcedureSpec spec, StructType input)
      implements BoundProcedure {
    @Override
    public String name() {
      return spec.name();
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
      ProcedureParameter[] out = new ProcedureParameter[spec.parameters().size()];
      for (int i = 0; i < out.length; i++) {
        ParameterSpec parameter = spec.parameters().get(i);
        DataType type = DataType.fromDDL(parameter.type());
        StructField argument = argument(parameter.name(), i);
        type = argument == null ? type : carried(type, argument.dataType());
        ProcedureParameter.Builder builder = ProcedureParameter.in(parameter.name(), type);
        if (parameter.default_() != null) {
          builder.defaultValue(parameter.default_());
        }
        builder.comment(parameter.comment());
        out[i] = builder.build();
      }
      return out;
    }

    /** The argument that a call gives a parameter by name or place; null if it gives none. */
    private StructField argument(String name, int place) {
      for (int i = 0; i < input.length(); i++) {
        StructField field = input.apply(i);
        boolean isNamed = field.metadata().contains(ProcedureParameter.BY_NAME_METADATA_KEY);
        if (isNamed ? field.name().equalsIgnoreCase(name) : i == place) {
          return field;
        }
      }
      return null;
    }

    @Override
    public Iterator<Scan> call(InternalRow arguments) {
      ProcedureParameter[] parameters = parameters();
      StructType row = new StructType();
      for (int i = 0; i < parameters.length; i++) {
        ProcedureParameter parameter = parameters[i];
        row = row.add(parameter.name(), parameter.dataType());
        StructField argument = argument(parameter.name(), i);
        if (argument != null && !argument.nullable() && arguments.isNullAt(i)) {
          throw new IllegalArgumentException(
              name()
                  + ": argument '"
                  + parameter.name()
                  + "' is not a value of type "
                  + parameter.dataType().sql());
        }
      }
      Map<String, JsonNode> values = new LinkedHashMap<>();
      Values.rowToJson(arguments, row)
          .properties()
          .forEach(each -> values.put(each.getKey(), each.getValue()));
      List<List<JsonNode>> rows;
      try {
        rows = Bridge.ask(Operations.PROCEDURE_CALL, new CallRequest(request, values)).rows();
      } finally {
        CachedPlans.refreshChanged(); // one that fails may have committed before
      }
      StructType output = new StructType();
      for (ResultColumn column : spec.result()) {
        output = output.add(column.name(), DataType.fromDDL(column.type()));
      }
      return List.<Scan>of(new Result(output, Values.rowsFromJson(rows, output))).iterator();
    }

    @Override
    public String toString() {
      return name();
    }
  }

  /**
   * The type in which an argument of another type goes to Python, which converts it or refuses it:
   * text, where a cast could cut a number or make a null of it.
   */
  private static DataType carried(DataType declared, DataType given) {
    if (Cast.canUpCast(given, declared)) {
      return declared;
    }
    if (declared instanceof ArrayType wanted && given instanceof ArrayType found) {
      return new ArrayType(carried(wanted.elementType(), found.elementType()), true);
    }
    if (declared instanceof MapType wanted && given instanceof MapType found) {
      return new MapType(wanted.keyType(), carried(wanted.valueType(), found.valueType()), true);
    }
    boolean isParsed = declared instanceof NumericType || DataTypes.BooleanType.sameType(declared);
    boolean hasText =
        given instanceof NumericType
            || given instanceof StringType
            || DataTypes.BooleanType.sameType(given);
    return isParsed && hasText ? DataTypes.StringType : declared;
  }

  private record Result(StructType readSchema, InternalRow[] rows) implements LocalScan {}
}
