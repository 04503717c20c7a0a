package io.lockgate.spark.merge;

import io.lockgate.spark.merge.folds.Fold;
import io.lockgate.spark.merge.folds.GroupOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.function.ToIntFunction;
import org.apache.spark.sql.types.DataType;

/** The rule for the rows of a key that has several. */
public interface MergeRule {
  /** Adds the merged row of the rows, from old to new, to the batch; nothing for a deleted key. */
  void take(RowVersions rows, MergeBatch batch);

  /**
   * The rule of a plan, for the batch that it will add rows to; {@code ordinals} gives the ordinal
   * of a column in rows of {@code types}, below 0 if it is not read.
   */
  static MergeRule of(
      MergePlan plan, DataType[] types, ToIntFunction<String> ordinals, MergeBatch output) {
    if (plan.engine().equals(MergePlan.FIRST_ROW)) {
      return (rows, batch) -> pickFirst(plan, rows, batch);
    } else if (plan.picksRows()) {
      boolean kept = plan.keepDeletes();
      return plan.ignoreDelete()
          ? MergeRule::pickNewestLeft
          : (rows, batch) -> pickNewest(rows, batch, kept);
    }
    RowEngine engine = RowEngine.of(plan, types, ordinals);
    MergeRule byRows = (rows, batch) -> compose(engine, rows, batch, plan.keepDeletes());
    if (!plan.groupsAreApart()) {
      return byRows;
    }
    List<GroupOrder> groups = new ArrayList<>();
    for (MergePlan.Group group : plan.groups()) {
      int[] columns = group.columns().stream().mapToInt(ordinals).toArray();
      // A group of which nothing is read needs no order, and has none here.
      groups.add(
          Arrays.stream(columns).anyMatch(at -> at < 0) ? null : new GroupOrder(columns, types));
    }
    output.mergeBy(
        folds(plan, types, ordinals, output, groups),
        groups.stream().filter(Objects::nonNull).toList());
    return (rows, batch) -> {
      if (rows.hasGone()) {
        byRows.take(rows, batch);
      } else {
        batch.merge(rows);
      }
    };
  }

  private static Fold[] folds(
      MergePlan plan,
      DataType[] types,
      ToIntFunction<String> ordinals,
      MergeBatch output,
      List<GroupOrder> groups) {
    int first = output.firstColumn();
    Fold[] folds = new Fold[types.length - first];
    for (int i = 0; i < folds.length; i++) {
      folds[i] = Fold.newest(types[first + i]);
    }
    for (MergePlan.Column column : plan.columns()) {
      int at = ordinals.applyAsInt(column.name());
      if (at >= first) {
        folds[at - first] =
            column.group() < 0
                ? Fold.of(column, types[at], output.mostRows())
                : Fold.inGroup(column, types[at], output.mostRows(), groups.get(column.group()));
      }
    }
    int kind = ordinals.applyAsInt(plan.kind());
    if (kind >= first) {
      folds[kind - first] = Fold.constant(RowEngine.INSERT, types[kind], output.mostRows());
    }
    return folds;
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
