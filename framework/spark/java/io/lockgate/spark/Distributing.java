package io.lockgate.spark;

import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.connector.distributions.Distribution;
import org.apache.spark.sql.connector.distributions.Distributions;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.SortDirection;
import org.apache.spark.sql.connector.expressions.SortOrder;

/** How rows come together in the tasks that write them. */
final class Distributing {
  private Distributing() {}

  /** All rows of one key meet in one task, so that their order within the job is known. */
  static Distribution byKey(LockgateTable table) {
    return clustered(table.primaryKey());
  }

  static Distribution of(LockgateTable table) {
    if (!table.primaryKey().isEmpty()) {
      return byKey(table);
    }
    Set<String> columns = new LinkedHashSet<>(table.partitionKeys());
    columns.addAll(table.bucketKey());
    return columns.isEmpty() ? Distributions.unspecified() : clustered(new ArrayList<>(columns));
  }

  /** Rows of one partition arrive together, so that a task has few files open. */
  static SortOrder[] ordering(LockgateTable table) {
    if (!table.primaryKey().isEmpty()) {
      return new SortOrder[0]; // the writer sorts by key, and must see the rows of one key in their order of arrival
    }
    List<SortOrder> out = new ArrayList<>();
    for (NamedReference column : LockgateTable.references(table.partitionKeys())) {
      out.add(Expressions.sort(column, SortDirection.ASCENDING));
    }
    return out.toArray(new SortOrder[0]);
  }

  private static Distribution clustered(List<String> columns) {
    Expression[] expressions = LockgateTable.references(columns);
    return Distributions.clustered(expressions);
  }
}
