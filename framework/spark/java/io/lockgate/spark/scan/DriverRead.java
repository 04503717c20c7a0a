package io.lockgate.spark.scan;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Optional;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.BindReferences;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.InterpretedUnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.expressions.package$;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** Rows that the driver reads with the readers of tasks, filtered, with the columns of a query. */
public final class DriverRead {
  // More is left to tasks, since the rows are held for as long as the plan is.
  private static final int MOST_ROWS = 1000;
  private static final long MOST_BYTES = 16 << 20;

  private final LockgateScan scan;
  private final InternalRow[] rows;
  private final int count;

  private DriverRead(LockgateScan scan, List<InternalRow> rows, int count) {
    this.scan = scan;
    this.rows = rows.toArray(InternalRow[]::new);
    this.count = count;
  }

  /** Returns what was read with other rows, which were made of it. */
  public DriverRead with(List<InternalRow> made) {
    return new DriverRead(scan, made, count);
  }

  /** The number of rows of the table that pass. */
  public int count() {
    return count;
  }

  public LockgateScan scan() {
    return scan;
  }

  public InternalRow[] rows() {
    return rows;
  }

  /**
   * Equal rows of equal scans: Spark then broadcasts them once, and computes what is above once.
   */
  @Override
  public boolean equals(Object other) {
    return other instanceof DriverRead read
        && scan.equals(read.scan)
        && count == read.count
        && Arrays.equals(rows, read.rows);
  }

  @Override
  public int hashCode() {
    return 31 * scan.hashCode() + Arrays.hashCode(rows);
  }

  /**
   * Returns the rows of a scan, unless there are too many or the read fails: a task will fail in
   * the same way, with its usual message.
   */
  static Optional<DriverRead> of(
      LockgateScan scan,
      List<Expression> conditions,
      List<NamedExpression> wanted,
      Seq<Attribute> columns) {
    try {
      return read(
          scan,
          bound(List.of(conditions.stream().reduce(And::new).orElseThrow()), columns).get(0),
          bound(wanted, columns));
    } catch (Exception failure) {
      return Optional.empty();
    }
  }

  private static List<Expression> bound(List<?> expressions, Seq<Attribute> columns) {
    List<Expression> bound = new ArrayList<>();
    var input = package$.MODULE$.AttributeSeq(columns);
    for (Object expression : expressions) {
      bound.add(BindReferences.bindReference((Expression) expression, input, false));
    }
    return bound;
  }

  /** By interpreted expressions: to compile them for a few thousand rows takes longer. */
  private static Optional<DriverRead> read(
      LockgateScan scan, Expression condition, List<Expression> wanted) throws IOException {
    PartitionReaderFactory readers = scan.createReaderFactory();
    UnsafeProjection projection =
        InterpretedUnsafeProjection.createProjection(CollectionConverters.asScala(wanted).toSeq());
    List<InternalRow> rows = new ArrayList<>();
    long bytes = 0;
    try (PartitionReader<ColumnarBatch> batches =
        readers.createColumnarReader(scan.wholePartition())) {
      while (batches.next()) {
        for (Iterator<InternalRow> all = batches.get().rowIterator(); all.hasNext(); ) {
          InternalRow row = all.next();
          if (Boolean.TRUE.equals(condition.eval(row))) {
            UnsafeRow found = projection.apply(row);
            bytes += found.getSizeInBytes();
            if (rows.size() == MOST_ROWS || bytes > MOST_BYTES) {
              return Optional.empty();
            }
            rows.add(found.copy());
          }
        }
      }
    }
    return Optional.of(new DriverRead(scan, rows, rows.size()));
  }
}
