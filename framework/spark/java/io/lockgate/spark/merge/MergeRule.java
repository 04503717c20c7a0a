package io.lockgate.spark.merge;

import java.util.function.ToIntFunction;
import org.apache.spark.sql.types.DataType;

/** The rule for the rows of a key that has several. */
public interface MergeRule {
  /** Adds the merged row of the rows, from old to new, to the batch; nothing for a deleted key. */
  void take(RowVersions rows, MergeBatch batch);

  /**
   * The rule of a plan; {@code ordinals} gives the ordinal of a column in rows of {@code types},
   * below 0 if it is not read.
   */
  static MergeRule of(MergePlan plan, DataType[] types, ToIntFunction<String> ordinals) {
    if (plan.engine().equals(MergePlan.FIRST_ROW)) {
      return (rows, batch) -> pickFirst(plan, rows, batch);
    } else if (plan.picksRows()) {
      boolean kept = plan.keepDeletes();
      return plan.ignoreDelete()
          ? MergeRule::pickNewestLeft
          : (rows, batch) -> pickNewest(rows, batch, kept);
    }
    RowEngine engine = RowEngine.of(plan, types, ordinals);
    return (rows, batch) -> compose(engine, rows, batch, plan.keepDeletes());
  }

  private static void pickNewest(RowVersions rows, MergeBatch batch, boolean kept) {
    int last = rows.size() - 1;
    if (kept || !rows.page(last).isGone(rows.row(last))) {
      batch.pick(rows.page(last), rows.row(last));
    }
  }

  /** Picks the newest row that is no deletion. */
  private static void pickNewestLeft(RowVersions rows, MergeBatch batch) {
    for (int i = rows.size() - 1; i >= 0; i--) {
      if (!rows.page(i).isGone(rows.row(i))) {
        batch.pick(rows.page(i), rows.row(i));
        return;
      }
    }
  }

  private static void pickFirst(MergePlan plan, RowVersions rows, MergeBatch batch) {
    int first = -1;
    for (int i = rows.size() - 1; i >= 0; i--) {
      if (!rows.page(i).isGone(rows.row(i))) {
        first = i;
      } else if (!plan.ignoreDelete()) {
        throw new IllegalArgumentException(
            "a row of kind -U or -D is in a table with merge engine 'first-row', which takes such"
                + " rows with option 'ignore-delete' only");
      }
    }
    if (first >= 0) {
      batch.pick(rows.page(first), rows.row(first));
    }
  }

  private static void compose(RowEngine engine, RowVersions rows, MergeBatch batch, boolean kept) {
    engine.reset();
    for (int i = 0; i < rows.size(); i++) {
      engine.add(rows.page(i).lasting(rows.row(i)), rows.page(i).kind(rows.row(i)));
    }
    if (kept || !engine.isDeleted()) {
      batch.make(engine);
    }
  }
}
