package io.lockgate.spark.scan;

import io.lockgate.spark.files.BucketFunction;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.distributions.Distribution;
import org.apache.spark.sql.connector.distributions.Distributions;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.SortDirection;
import org.apache.spark.sql.connector.expressions.SortOrder;

/** The distribution of rows among the tasks that write them. */
public final class WriteDistribution {
  private static final int SHUFFLED_PER_STORED = 3;

  private WriteDistribution() {}

  /**
   * All rows of one bucket meet in one task: so do those of one key, and the task writes one file a
   * bucket. Where buckets are dynamic, those of one key meet.
   */
  public static Distribution of(LoadedTable table) {
    if (!table.clustering().isEmpty() && table.bucketCount() == 0 && !isStream()) {
      return Distributions.ordered(ordering(table));
    }
    boolean dynamic = table.bucketCount() == 0 && !table.primaryKey().isEmpty();
    Expression[] clustering =
        dynamic ? LoadedTable.references(table.primaryKey()) : partitioning(table);
    return clustering.length == 0
        ? Distributions.unspecified()
        : Distributions.clustered(clustering);
  }

  /** To divide rows by ranges Spark reads them twice, which not every source of a stream allows. */
  private static boolean isStream() {
    return SparkSession.active().sparkContext().getLocalProperty("streaming.sql.batchId") != null;
  }

  /**
   * Expressions that decide where a row lies: the partition columns, and the bucket where there are
   * fixed ones.
   */
  public static Expression[] partitioning(LoadedTable table) {
    List<Expression> expressions =
        new ArrayList<>(List.of(LoadedTable.references(table.partitionKeys())));
    if (table.bucketCount() > 0) {
      expressions.add(bucket(table));
    }
    return expressions.toArray(new Expression[0]);
  }

  private static Expression bucket(LoadedTable table) {
    List<Expression> arguments = new ArrayList<>();
    arguments.add(Expressions.literal(table.bucketCount()));
    arguments.addAll(List.of(LoadedTable.references(table.bucketKey())));
    return Expressions.apply(BucketFunction.NAME, arguments.toArray(new Expression[0]));
  }

  /**
   * Returns how many bytes Spark should shuffle into a task that may write part of a partition, 0
   * where it has no say: as many as make a file of the target size. Rows in a shuffle take a few
   * times the bytes of columns in ORC.
   */
  public static long bytesOfTask(LoadedTable table) {
    boolean mayBeSplit = table.primaryKey().isEmpty() && !table.partitionKeys().isEmpty();
    return mayBeSplit ? SHUFFLED_PER_STORED * table.targetFileSize() : 0;
  }

  /** More tasks than buckets would be idle; 0 lets Spark choose. */
  public static int tasks(LoadedTable table) {
    return table.partitionKeys().isEmpty() ? table.bucketCount() : 0;
  }

  /**
   * Rows of one bucket of a partition arrive together, so that a task has one file open and closes
   * none before it is full. Then come the columns by which the table's rows are ordered.
   */
  public static SortOrder[] ordering(LoadedTable table) {
    if (!table.primaryKey().isEmpty()) {
      return new SortOrder
          [0]; // the writer sorts by key, and must see the rows of one key in their order of
      // arrival
    }
    List<SortOrder> out = new ArrayList<>();
    for (NamedReference column : LoadedTable.references(table.partitionKeys())) {
      out.add(Expressions.sort(column, SortDirection.ASCENDING));
    }
    if (!out.isEmpty() && table.bucketCount() > 0) {
      out.add(Expressions.sort(bucket(table), SortDirection.ASCENDING));
    }
    for (NamedReference column : LoadedTable.references(table.clustering())) {
      out.add(Expressions.sort(column, SortDirection.ASCENDING));
    }
    return out.toArray(new SortOrder[0]);
  }
}
