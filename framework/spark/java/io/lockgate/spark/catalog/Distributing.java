package io.lockgate.spark.catalog;

import io.lockgate.spark.files.BucketFunction;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.connector.distributions.Distribution;
import org.apache.spark.sql.connector.distributions.Distributions;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.SortDirection;
import org.apache.spark.sql.connector.expressions.SortOrder;

/** How rows come together in the tasks that write them. */
final class Distributing {
  private static final int SHUFFLED_PER_STORED = 3;

  private Distributing() {}

  /**
   * All rows of one bucket meet in one task: so do those of one key, and the task writes one file a
   * bucket.
   */
  static Distribution of(LockgateTable table) {
    Expression[] places = places(table);
    return places.length == 0 ? Distributions.unspecified() : Distributions.clustered(places);
  }

  /**
   * What decides where a row lies: the partition columns, and the bucket where there are fixed
   * ones.
   */
  static Expression[] places(LockgateTable table) {
    List<Expression> expressions =
        new ArrayList<>(List.of(LockgateTable.references(table.partitionKeys())));
    if (table.bucketCount() > 0) {
      expressions.add(bucket(table));
    }
    return expressions.toArray(new Expression[0]);
  }

  private static Expression bucket(LockgateTable table) {
    List<Expression> arguments = new ArrayList<>();
    arguments.add(Expressions.literal(table.bucketCount()));
    arguments.addAll(List.of(LockgateTable.references(table.bucketKey())));
    return Expressions.apply(BucketFunction.NAME, arguments.toArray(new Expression[0]));
  }

  /**
   * How many bytes Spark should shuffle into a task that may write part of a partition, 0 where it
   * has no say: as many as make a file of the target size. Rows in a shuffle take a few times the
   * bytes of columns in ORC.
   */
  static long bytesOfTask(LockgateTable table) {
    boolean mayBeSplit = table.primaryKey().isEmpty() && !table.partitionKeys().isEmpty();
    return mayBeSplit ? SHUFFLED_PER_STORED * table.targetFileSize() : 0;
  }

  /** More tasks than buckets would be idle; 0 lets Spark choose. */
  static int tasks(LockgateTable table) {
    return table.partitionKeys().isEmpty() ? table.bucketCount() : 0;
  }

  /**
   * Rows of one bucket of a partition arrive together, so that a task has one file open and closes
   * none before it is full.
   */
  static SortOrder[] ordering(LockgateTable table) {
    if (!table.primaryKey().isEmpty()) {
      return new SortOrder
          [0]; // the writer sorts by key, and must see the rows of one key in their order of
      // arrival
    }
    List<SortOrder> out = new ArrayList<>();
    for (NamedReference column : LockgateTable.references(table.partitionKeys())) {
      out.add(Expressions.sort(column, SortDirection.ASCENDING));
    }
    if (!out.isEmpty() && table.bucketCount() > 0) {
      out.add(Expressions.sort(bucket(table), SortDirection.ASCENDING));
    }
    return out.toArray(new SortOrder[0]);
  }
}
