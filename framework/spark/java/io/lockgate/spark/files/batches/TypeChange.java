package io.lockgate.spark.files.batches;

import io.lockgate.spark.bridge.Failure;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.EvalMode$;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.catalyst.util.ArrayBasedMapData;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.Option;

/**
 * Turns values of the type that a column had when a file was written into those of its type now:
 * fields inside are found by their ids, and values of other types are cast, as in Paimon's {@code
 * SchemaEvolutionUtil}.
 */
@FunctionalInterface
public interface TypeChange {
  /** Returns the value at a position of a row or an array, changed; null for null. */
  Object value(SpecializedGetters from, int ordinal);

  /**
   * The change from one type to another; fields that were not there are null.
   *
   * @throws RuntimeException an UnsupportedError if values of the one type are none of the other
   */
  static TypeChange of(StoredType written, StoredType wanted) {
    TypeChange change = ofPresent(written, wanted);
    return (from, ordinal) -> from.isNullAt(ordinal) ? null : change.value(from, ordinal);
  }

  private static TypeChange ofPresent(StoredType written, StoredType wanted) {
    DataType then = written.type();
    DataType now = wanted.type();
    if (then.equals(now) && wanted.isPartOf(written)) {
      return (from, ordinal) -> from.get(ordinal, then);
    } else if (then instanceof StructType && now instanceof StructType) {
      return ofStruct(written, wanted);
    } else if (then instanceof ArrayType && now instanceof ArrayType) {
      TypeChange element = of(written.element(), wanted.element());
      return (from, ordinal) -> array(from.getArray(ordinal), element);
    } else if (then instanceof MapType && now instanceof MapType) {
      TypeChange key = of(written.key(), wanted.key());
      TypeChange value = of(written.value(), wanted.value());
      return (from, ordinal) -> {
        MapData map = from.getMap(ordinal);
        return new ArrayBasedMapData(array(map.keyArray(), key), array(map.valueArray(), value));
      };
    }
    return cast(then, now);
  }

  private static TypeChange ofStruct(StoredType written, StoredType wanted) {
    StructField[] then = ((StructType) written.type()).fields();
    StructField[] now = ((StructType) wanted.type()).fields();
    int[] positions = new int[now.length];
    TypeChange[] changes = new TypeChange[now.length];
    for (int i = 0; i < now.length; i++) {
      positions[i] = written.indexOf(now[i].name(), wanted);
      changes[i] =
          positions[i] < 0
              ? (from, ordinal) -> null
              : of(written.field(then[positions[i]]), wanted.field(now[i]));
    }
    return (from, ordinal) -> {
      InternalRow struct = from.getStruct(ordinal, then.length);
      GenericInternalRow changed = new GenericInternalRow(now.length);
      for (int i = 0; i < now.length; i++) {
        changed.update(i, changes[i].value(struct, positions[i]));
      }
      return changed;
    };
  }

  private static ArrayData array(ArrayData values, TypeChange change) {
    Object[] changed = new Object[values.numElements()];
    for (int i = 0; i < changed.length; i++) {
      changed[i] = change.value(values, i);
    }
    return new GenericArrayData(changed);
  }

  private static TypeChange cast(DataType then, DataType now) {
    if (!Cast.canAnsiCast(then, now)) {
      throw Failure.inTask(
          "UnsupportedError: values of the type "
              + then.sql()
              + " in a file cannot be read as "
              + now.sql()
              + ", the type that their column has now",
          null);
    }
    Cast cast =
        new Cast(
            new BoundReference(0, then, true), now, Option.apply("UTC"), EvalMode$.MODULE$.ANSI());
    GenericInternalRow single = new GenericInternalRow(1);
    return (from, ordinal) -> {
      single.update(0, from.get(ordinal, then));
      return cast.eval(single);
    };
  }
}
