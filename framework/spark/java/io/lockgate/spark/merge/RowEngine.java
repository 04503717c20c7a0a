package io.lockgate.spark.merge;

import io.lockgate.spark.merge.functions.ColumnFunction;
import java.util.ArrayList;
import java.util.List;
import java.util.function.ToIntFunction;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.DataType;

/** Combines the rows of a key into one, column by column; source: Paimon's merge functions. */
public abstract class RowEngine {
  static final byte INSERT = 0;
  private static final byte UPDATE_BEFORE = 1;
  static final byte DELETE = 3;

  /** A column of the rows, and what becomes of its values. */
  static final class Field {
    final MergePlan.Column plan;
    final int at;
    final DataType type;
    final ColumnFunction function;

    Field(MergePlan.Column plan, int at, DataType type) {
      this.plan = plan;
      this.at = at;
      this.type = type;
      this.function = ColumnFunction.of(plan, type);
    }
  }

  final MergePlan plan;
  final List<Field> fields = new ArrayList<>();
  final Object[] values;
  final boolean[] merged;
  private final DataType[] types;
  private final int kindAt;
  InternalRow newest;
  boolean removed;

  RowEngine(MergePlan plan, DataType[] types, ToIntFunction<String> ordinals) {
    this.plan = plan;
    this.types = types.clone();
    this.kindAt = ordinals.applyAsInt(plan.kind());
    this.values = new Object[types.length];
    this.merged = new boolean[types.length];
    for (MergePlan.Column column : plan.columns()) {
      int at = ordinals.applyAsInt(column.name());
      if (at >= 0 && !column.function().equals("sequence")) {
        fields.add(new Field(column, at, types[at]));
        merged[at] = true;
      }
    }
  }

  /**
   * The engine of a plan; {@code ordinals} gives the ordinal of a column in rows of {@code types},
   * below 0 if it is not read.
   */
  public static RowEngine of(MergePlan plan, DataType[] types, ToIntFunction<String> ordinals) {
    return plan.engine().equals(MergePlan.AGGREGATION)
        ? new Aggregation(plan, types, ordinals)
        : new PartialUpdate(plan, types, ordinals);
  }

  static boolean retracts(byte kind) {
    return kind == UPDATE_BEFORE || kind == DELETE;
  }

  /** Forgets the key before. */
  public void reset() {
    java.util.Arrays.fill(values, null);
    newest = null;
    removed = false;
    for (Field field : fields) {
      field.function.reset();
    }
  }

  /**
   * Takes in the next row of the key, from old to new; the row must stay as it is until the result
   * was read.
   */
  public abstract void add(InternalRow row, byte kind);

  /** Tells whether the key has no row now. */
  public boolean isDeleted() {
    return removed;
  }

  /** The value of a column; of one that the plan does not name, that of the newest row. */
  public Object value(int at) {
    if (at == kindAt) {
      return isDeleted() ? DELETE : INSERT;
    }
    return merged[at] ? values[at] : read(newest, at);
  }

  final Object read(InternalRow row, int at) {
    return row.isNullAt(at) ? null : row.get(at, types[at]);
  }

  /** Begins with the values of a row. */
  void begin(InternalRow row) {
    for (Field field : fields) {
      values[field.at] = read(row, field.at);
    }
  }

  final void takeIn(Field field, InternalRow row) {
    values[field.at] = field.function.add(values[field.at], read(row, field.at));
  }

  final void takeBack(Field field, InternalRow row, boolean late) {
    if (field.plan.ignoreRetract()) {
      return;
    }
    Object gone = read(row, field.at);
    values[field.at] =
        late
            ? field.function.retractLate(values[field.at], gone)
            : field.function.retract(values[field.at], gone);
  }
}
