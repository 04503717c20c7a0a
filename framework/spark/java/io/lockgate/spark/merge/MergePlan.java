package io.lockgate.spark.merge;

import io.lockgate.spark.messages.ColumnMergeJson;
import io.lockgate.spark.messages.MergePlanJson;
import java.io.Serializable;
import java.util.Collection;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

/**
 * The plan by which the rows of one key become one row; the plan is written in Python, this is how
 * the connector reads it.
 *
 * <p>{@code descending} are those columns of {@code sequence} of which the smaller value is newer.
 * {@code keepDeletes}: a key whose rows become a deletion has that as its row.
 */
public record MergePlan(
    String engine,
    List<String> key,
    List<String> sequence,
    List<String> descending,
    String kind,
    List<Column> columns,
    List<Group> groups,
    boolean ignoreDelete,
    boolean removeOnDelete,
    boolean keepDeletes)
    implements Serializable {
  public static final String SEQUENCE_NUMBER = "_SEQUENCE_NUMBER";
  public static final String DEDUPLICATE = "deduplicate";
  public static final String FIRST_ROW = "first-row";
  public static final String PARTIAL_UPDATE = "partial-update";
  public static final String AGGREGATION = "aggregation";
  private static final Set<String> ENGINES =
      Set.of(DEDUPLICATE, FIRST_ROW, PARTIAL_UPDATE, AGGREGATION);

  /**
   * The merge of the values of one column; {@code group} is below 0 for a column outside groups.
   */
  public record Column(
      String name,
      String function,
      int group,
      boolean ignoreRetract,
      boolean distinct,
      String delimiter,
      List<String> nestedKey,
      String nullKeys,
      List<String> nestedSequence,
      int limit,
      String timeField)
      implements Serializable {
    static Column of(ColumnMergeJson column) {
      return new Column(
          column.name(),
          column.function(),
          column.group() == null ? -1 : Math.toIntExact(column.group()),
          column.ignoreRetract(),
          column.distinct(),
          column.delimiter(),
          column.nestedKey(),
          column.nullKeys(),
          column.nestedSequence(),
          column.limit() == null ? Integer.MAX_VALUE : Math.toIntExact(column.limit()),
          column.timeField());
    }

    /** Returns the error that this column's function cannot retract a row. */
    public IllegalArgumentException noRetract() {
      return new IllegalArgumentException(
          "column '"
              + name
              + "': '"
              + function
              + "' cannot retract a row of kind -U or -D; with option 'fields."
              + name
              + ".ignore-retract' = 'true' such rows leave the column unchanged");
    }
  }

  /**
   * Columns that say which row is newest for a group of others; {@code removes}: a deletion that is
   * removes the row.
   */
  public record Group(List<String> columns, boolean removes) implements Serializable {}

  public static MergePlan of(MergePlanJson plan) {
    if (!ENGINES.contains(plan.engine())) {
      throw new IllegalArgumentException(
          "merge engine '"
              + plan.engine()
              + "' is not supported; the connector knows: "
              + String.join(", ", ENGINES.stream().sorted().toList()));
    }
    return new MergePlan(
        plan.engine(),
        plan.key(),
        plan.sequence(),
        plan.descending(),
        plan.kind(),
        plan.columns().stream().map(Column::of).toList(),
        plan.groups().stream().map(group -> new Group(group.columns(), group.removes())).toList(),
        plan.ignoreDelete(),
        plan.removeOnDelete(),
        plan.keepDeletes());
  }

  /** Tells whether a deletion that is alone with its key stays. */
  public boolean keepsAlone() {
    return keepDeletes && !(ignoreDelete && picksRows());
  }

  /** Tells whether what is left of a key is one of its rows; else it is put together of several. */
  public boolean picksRows() {
    return engine.equals(DEDUPLICATE) || engine.equals(FIRST_ROW);
  }

  /** Tells whether each column that orders a group does nothing else. */
  public boolean groupsAreApart() {
    for (int i = 0; i < groups.size(); i++) {
      int number = i;
      for (String name : groups.get(i).columns()) {
        if (columns.stream()
            .noneMatch(
                column ->
                    column.name().equals(name)
                        && column.function().equals("sequence")
                        && column.group() == number)) {
          return false;
        }
      }
    }
    return true;
  }

  /** The columns that must be merged along with {@code names}: those that order their groups. */
  public List<String> companions(Collection<String> names) {
    Set<String> found = new LinkedHashSet<>();
    for (int i = 0; i < groups.size(); i++) {
      int number = i;
      if (groups.get(i).removes()
          || columns.stream()
              .anyMatch(column -> column.group() == number && names.contains(column.name()))) {
        found.addAll(groups.get(i).columns());
      }
    }
    found.removeAll(names);
    return List.copyOf(found);
  }
}
