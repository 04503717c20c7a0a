package io.lockgate.spark.merge.functions;

import io.lockgate.spark.merge.MergePlan;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;

/**
 * The elements of all arrays; with {@code distinct} each once, in the order in which they came
 * first.
 */
final class Collect extends ColumnFunction {
  private final DataType type;

  Collect(MergePlan.Column plan, DataType type) {
    super(plan);
    this.type = ((ArrayType) type).elementType();
  }

  @Override
  public Object add(Object value, Object newer) {
    if (value == null && newer == null) {
      return null;
    }
    if (!plan().distinct() && (value == null || newer == null)) {
      return value == null ? newer : value;
    }
    List<Object> all = new ArrayList<>();
    Set<Object> seen = new HashSet<>();
    append(all, seen, value);
    append(all, seen, newer);
    return new GenericArrayData(all.toArray());
  }

  private void append(List<Object> all, Set<Object> seen, Object array) {
    if (array != null) {
      ArrayData elements = (ArrayData) array;
      for (int i = 0; i < elements.numElements(); i++) {
        Object element = Frozen.element(elements, i, type);
        if (!plan().distinct() || seen.add(Frozen.of(element, type))) {
          all.add(element);
        }
      }
    }
  }

  @Override
  public Object addLate(Object value, Object late) {
    // As Paimon does: behind as well, but where retractions are ignored.
    return plan().ignoreRetract() ? add(late, value) : add(value, late);
  }

  @Override
  public Object retract(Object value, Object gone) {
    if (value == null || gone == null || ((ArrayData) gone).numElements() == 0) {
      return value;
    }
    List<Object> left = new ArrayList<>();
    ArrayData taken = (ArrayData) gone;
    for (int i = 0; i < taken.numElements(); i++) {
      left.add(Frozen.of(Frozen.element(taken, i, type), type));
    }
    List<Object> kept = new ArrayList<>();
    ArrayData elements = (ArrayData) value;
    for (int i = 0; i < elements.numElements(); i++) {
      Object element = Frozen.element(elements, i, type);
      if (!left.remove(Frozen.of(element, type))) {
        kept.add(element);
      }
    }
    return new GenericArrayData(kept.toArray());
  }
}
