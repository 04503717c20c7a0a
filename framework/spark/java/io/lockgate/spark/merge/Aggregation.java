package io.lockgate.spark.merge;

import java.util.function.ToIntFunction;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.DataType;

/** Each column by its function; source: Paimon's {@code AggregateMergeFunction}. */
final class Aggregation extends RowEngine {
  Aggregation(MergePlan plan, DataType[] types, ToIntFunction<String> ordinals) {
    super(plan, types, ordinals);
  }

  @Override
  public void add(InternalRow row, byte kind) {
    newest = row;
    removed = plan.removeOnDelete() && kind == DELETE;
    if (removed) {
      begin(row);
      return;
    }
    boolean back = retracts(kind);
    for (Field field : fields) {
      if (back) {
        takeBack(field, row, false);
      } else {
        takeIn(field, row);
      }
    }
  }
}
