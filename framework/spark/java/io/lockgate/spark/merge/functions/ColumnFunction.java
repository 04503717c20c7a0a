package io.lockgate.spark.merge.functions;

import io.lockgate.spark.merge.MergePlan;
import org.apache.spark.sql.types.DataType;

/**
 * A function of the values of one column of one key, in Spark's internal form; null stands for no
 * value.
 */
public abstract class ColumnFunction {
  private final MergePlan.Column plan;

  ColumnFunction(MergePlan.Column plan) {
    this.plan = plan;
  }

  /** The function that a plan names. */
  public static ColumnFunction of(MergePlan.Column plan, DataType type) {
    return switch (plan.function()) {
      case "last",
          "last_value",
          "set",
          "last_non_null_value",
          "first_value",
          "first_non_null_value",
          "max",
          "bool_or",
          "min",
          "bool_and" ->
          RowSelections.of(plan);
      case "sum", "product" -> new Numbers(plan, type);
      case "listagg" -> new ListAgg(plan);
      case "rbm32" -> new Bitmaps(plan);
      case "rbm64" -> new LongBitmaps(plan);
      case "hll_sketch", "theta_sketch" -> new Sketches(plan);
      case "collect" -> new Collect(plan, type);
      case "merge_map", "merge_map_with_keytime" -> new MergeMap(plan, type);
      case "nested_update", "nested_partial_update" -> new NestedRows(plan, type);
      default ->
          throw new IllegalArgumentException(
              "column "
                  + plan.name()
                  + ": merge function '"
                  + plan.function()
                  + "' is not supported by the connector");
    };
  }

  final MergePlan.Column plan() {
    return plan;
  }

  /** Forgets the key before. */
  public void reset() {}

  /** The value after a row that is newer than those before. */
  public abstract Object add(Object value, Object newer);

  /** The value after a row that is older, in its group, than one before. */
  public Object addLate(Object value, Object late) {
    return add(late, value);
  }

  /** The value after a row is taken back. */
  public Object retract(Object value, Object gone) {
    throw plan.noRetract();
  }

  /** The value after a row is taken back that is older, in its group, than one before. */
  public Object retractLate(Object value, Object gone) {
    return retract(value, gone);
  }
}
