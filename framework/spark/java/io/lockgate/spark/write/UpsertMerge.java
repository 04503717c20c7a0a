package io.lockgate.spark.write;

import io.lockgate.spark.merge.MergePlan;
import io.lockgate.spark.merge.RowEngine;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.types.DataType;

/** Merges the rows of a key in one write, from old to new; a single row stays as it is. */
final class UpsertMerge {
  private static final byte INSERT = 0;
  private static final byte DELETE = 3;

  private final boolean keepsFirst;
  private final RowEngine engine;
  private final int kindAt;
  private final GenericInternalRow made;
  private InternalRow first;
  private boolean merges;

  /**
   * {@code before} columns of the rows precede the table's own; {@code plan} may be null: the
   * newest row.
   */
  UpsertMerge(MergePlan plan, WriteSpec spec, DataType[] types, int before, int kindAt) {
    this.keepsFirst = plan != null && plan.engine().equals(MergePlan.FIRST_ROW);
    this.engine =
        plan == null || keepsFirst
            ? null
            : RowEngine.of(plan, types, name -> index(spec, name, before));
    this.kindAt = kindAt;
    this.made = new GenericInternalRow(types.length);
  }

  private static int index(WriteSpec spec, String name, int before) {
    for (int i = 0; i < spec.fields().size(); i++) {
      if (spec.fields().get(i).name().equals(name)) {
        return before + i;
      }
    }
    return -1;
  }

  /** Takes in a row that another of the key follows. */
  void add(InternalRow row) {
    first = first == null ? row : first;
    if (engine != null) {
      if (!merges) {
        engine.reset();
      }
      engine.add(row, row.getByte(kindAt));
    }
    merges = true;
  }

  /** The row of a key whose last row this is. */
  InternalRow finish(InternalRow last) {
    InternalRow oldest = first;
    boolean merged = merges;
    first = null;
    merges = false;
    if (!merged || engine == null) {
      return keepsFirst && merged ? oldest : last;
    }
    engine.add(last, last.getByte(kindAt));
    for (int i = 0; i < made.numFields(); i++) {
      made.update(i, engine.value(i));
    }
    made.setByte(kindAt, engine.isDeleted() ? DELETE : INSERT);
    return made;
  }
}
