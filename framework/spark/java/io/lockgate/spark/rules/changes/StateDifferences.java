package io.lockgate.spark.rules.changes;

import io.lockgate.spark.catalog.LockgateTable;
import io.lockgate.spark.scan.LoadedTable;
import java.util.Collections;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.Except;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.UpdateTable;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractPartialFunction;
import scala.runtime.BoxedUnit;

/**
 * A table read with {@code incremental-between-scan-mode} = {@code diff}, between two tags, or up
 * to an automatic tag, by options of the query or else of the table: the rows of the later state
 * EXCEPT ALL those of the earlier one. Each of the scans reads the files alone that differ. {@link
 * KindDifference} makes the plan where rows are shown with their kinds.
 */
public final class StateDifferences extends Rule<LogicalPlan> {
  public static final StateDifferences RULE = new StateDifferences();

  private static final String MODE = "incremental-between-scan-mode";
  private static final String ENDS = "incremental-between";
  private static final String TAG = "incremental-to-auto-tag";

  /** Options of a query that leave it to the table's own to say what is read. */
  private static final Set<String> UNSELECTING =
      Set.of(
          "source.split.target-size",
          "source.split.open-file-cost",
          "source.split.driver-max-size",
          LoadedTable.GRANT.toLowerCase(Locale.ROOT),
          LoadedTable.RIGHTS.toLowerCase(Locale.ROOT));

  private StateDifferences() {}

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    return plan.resolveOperatorsUp(new Differences(changed(plan)));
  }

  /** The relations whose rows a statement changes: those are of no range of snapshots. */
  private static Set<LogicalPlan> changed(LogicalPlan plan) {
    Set<LogicalPlan> found = Collections.newSetFromMap(new IdentityHashMap<>());
    plan.foreach(
        node -> {
          LogicalPlan target = target(node);
          if (target != null) {
            found.addAll(CollectionConverters.asJava(target.collectLeaves()));
          }
          return BoxedUnit.UNIT;
        });
    return found;
  }

  private static LogicalPlan target(LogicalPlan statement) {
    if (statement instanceof DeleteFromTable delete) {
      return delete.table();
    } else if (statement instanceof UpdateTable update) {
      return update.table();
    } else if (statement instanceof MergeIntoTable merge) {
      return merge.targetTable();
    }
    return null;
  }

  private static final class Differences extends AbstractPartialFunction<LogicalPlan, LogicalPlan> {
    private final Set<LogicalPlan> changed;

    Differences(Set<LogicalPlan> changed) {
      this.changed = changed;
    }

    @Override
    public boolean isDefinedAt(LogicalPlan plan) {
      return plan instanceof DataSourceV2Relation relation
          && relation.table() instanceof LockgateTable table
          && !changed.contains(plan)
          && (table.view() == null || table.view().kinds() && !table.view().arrays())
          && asksForDifference(selecting(relation.options(), table))
          && !hasMap(relation.schema());
    }

    @Override
    public LogicalPlan apply(LogicalPlan plan) {
      DataSourceV2Relation relation = (DataSourceV2Relation) plan;
      // References to the relation's columns now mean those of the later state.
      DataSourceV2Relation after = state(relation, "diff-after");
      DataSourceV2Relation before = state(relation, "diff-before");
      LockgateTable table = (LockgateTable) relation.table();
      return table.view() == null
          ? new Except(after, before.newInstance(), true)
          : new KindDifference(before, after, table).plan();
    }
  }

  /** The options that say what is read: those of a query, or of the table if it gives none. */
  private static CaseInsensitiveStringMap selecting(
      CaseInsensitiveStringMap options, LockgateTable table) {
    boolean ofTable =
        table.comparesStates() && !table.timeTravel() && UNSELECTING.containsAll(options.keySet());
    return ofTable ? new CaseInsensitiveStringMap(table.properties()) : options;
  }

  private static boolean asksForDifference(CaseInsensitiveStringMap options) {
    String mode = options.getOrDefault(MODE, "auto").strip();
    if (options.containsKey(TAG)) {
      return !mode.startsWith("diff-");
    }
    String ends = options.get(ENDS);
    if (mode.equalsIgnoreCase("diff")) {
      return true;
    }
    return ends != null
        && mode.equalsIgnoreCase("auto")
        && List.of(ends.split(",", -1)).stream()
            .noneMatch(end -> end.strip().chars().allMatch(Character::isDigit));
  }

  /** Not by a constructor: Spark's versions have several. */
  private static DataSourceV2Relation state(DataSourceV2Relation relation, String mode) {
    Map<String, String> options = new HashMap<>(relation.options().asCaseSensitiveMap());
    CaseInsensitiveStringMap selecting =
        selecting(relation.options(), (LockgateTable) relation.table());
    for (String key : List.of(ENDS, ENDS + "-timestamp", TAG)) {
      if (selecting.containsKey(key)) {
        options.keySet().removeIf(key::equalsIgnoreCase);
        options.put(key, selecting.get(key));
      }
    }
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
