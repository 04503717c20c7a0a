package io.lockgate.spark.changes;

import io.lockgate.spark.catalog.LockgateTable;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.plans.logical.Except;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.PartialFunction;
import scala.runtime.AbstractPartialFunction;

/**
 * A table read with {@code incremental-between-scan-mode} = {@code diff}, between two tags, or up
 * to an automatic tag: the rows of the later state EXCEPT ALL those of the earlier one. Each of the
 * two scans reads the files alone that differ.
 */
public final class StateDifferences extends Rule<LogicalPlan> {
  public static final StateDifferences RULE = new StateDifferences();

  private static final String MODE = "incremental-between-scan-mode";
  private static final String ENDS = "incremental-between";
  private static final String TAG = "incremental-to-auto-tag";

  private static final PartialFunction<LogicalPlan, LogicalPlan> DIFFERENCE =
      new AbstractPartialFunction<>() {
        @Override
        public boolean isDefinedAt(LogicalPlan plan) {
          return plan instanceof DataSourceV2Relation relation
              && relation.table() instanceof LockgateTable table
              && table.view() == null
              && asksForDifference(relation.options())
              && !hasMap(relation.schema());
        }

        @Override
        public LogicalPlan apply(LogicalPlan plan) {
          return difference((DataSourceV2Relation) plan);
        }
      };

  private StateDifferences() {}

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    return plan.resolveOperatorsUp(DIFFERENCE);
  }

  private static boolean asksForDifference(CaseInsensitiveStringMap options) {
    String mode = options.getOrDefault(MODE, "auto").strip();
    if (options.containsKey(TAG)) {
      return !mode.startsWith("diff-");
    }
    if (mode.equalsIgnoreCase("diff")) {
      return true;
    }
    String ends = options.get(ENDS);
    return ends != null
        && mode.equalsIgnoreCase("auto")
        && List.of(ends.split(",", -1)).stream()
            .noneMatch(end -> end.strip().chars().allMatch(Character::isDigit));
  }

  private static LogicalPlan difference(DataSourceV2Relation relation) {
    // References to the relation's columns now mean those of the later state.
    DataSourceV2Relation after = state(relation, "diff-after");
    return new Except(after, state(relation, "diff-before").newInstance(), true);
  }

  /** Not by a constructor: Spark's versions have several. */
  private static DataSourceV2Relation state(DataSourceV2Relation relation, String mode) {
    Map<String, String> options = new HashMap<>(relation.options().asCaseSensitiveMap());
    options.keySet().removeIf(MODE::equalsIgnoreCase);
    options.put(MODE, mode);
    Object[] members = new Object[relation.productArity()];
    for (int i = 0; i < members.length; i++) {
      Object member = relation.productElement(i);
      members[i] =
          member instanceof CaseInsensitiveStringMap
              ? new CaseInsensitiveStringMap(options)
              : member;
    }
    return (DataSourceV2Relation) relation.makeCopy(members);
  }

  /** Spark compares no MAPs; Python says so, to those who may read the table. */
  private static boolean hasMap(DataType type) {
    if (type instanceof StructType struct) {
      for (StructField field : struct.fields()) {
        if (hasMap(field.dataType())) {
          return true;
        }
      }
      return false;
    }
    return type instanceof MapType
        || type instanceof ArrayType array && hasMap(array.elementType());
  }
}
