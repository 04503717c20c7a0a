package io.lockgate.spark.write;

import io.lockgate.spark.merge.RowAges;
import io.lockgate.spark.merge.SortPrefix;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.SparkEnv;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Ascending$;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.EvalMode$;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.JoinedRow;
import org.apache.spark.sql.catalyst.expressions.NullsFirst$;
import org.apache.spark.sql.catalyst.expressions.RowOrdering;
import org.apache.spark.sql.catalyst.expressions.SortOrder;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.execution.UnsafeExternalRowSorter;
import org.apache.spark.sql.types.ByteType$;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType$;
import org.apache.spark.sql.types.LongType$;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.collection.unsafe.sort.PrefixComparators;
import scala.Option;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.math.Ordering;

/**
 * Writes rows of a key table: sorted by partition, bucket and key with Spark's sorter, which
 * spills, then one row a key, with rising sequence numbers: what the table's engine makes of those
 * that come, from old to new by the sequence columns and then by arrival.
 */
final class UpsertWriter extends TaskWriter {
  // Columns of a sorted row before the table's own.
  private static final int BUCKET = 0;
  private static final int ARRIVAL = 1;
  static final int KIND = 2;
  static final int BEFORE = 3;
  // By their numbers in files.
  private static final List<String> KINDS = List.of("+I", "-U", "+U", "-D");

  private final DataType[] types;
  private final UnsafeProjection toSorted;
  private final UnsafeExternalRowSorter sorter;
  private final Ordering<InternalRow> sameBucket;
  private final Ordering<InternalRow> sameKey;
  private final UnsafeProjection keyOf;
  private final JoinedRow joined = new JoinedRow();
  private final GenericInternalRow prefix = new GenericInternalRow(BEFORE);
  private final UpsertMerge merge;
  private final int kindColumn;
  private long arrivals;
  private final PendingRows asked;
  private DataFileWriter file;
  private DataFileWriter changelog;

  UpsertWriter(WriteSpec spec, Configuration conf, String attempt) throws IOException {
    super(spec, conf, attempt);
    this.types = types(spec);
    this.toSorted = project(all(types.length));
    List<SortOrder> bucket = orders(columns(spec.partition()));
    bucket.addAll(signs(columns(spec.partition())));
    bucket.addAll(orders(List.of(BUCKET)));
    List<SortOrder> key = new ArrayList<>(bucket);
    key.addAll(orders(columns(spec.trimmedKey())));
    this.sameBucket = ordering(bucket);
    this.sameKey = ordering(key);
    this.keyOf = project(columns(spec.trimmedKey()));
    List<SortOrder> order = new ArrayList<>(key);
    for (int index : columns(spec.sequence())) {
      order.add(new RowAges.Column(index, types[index], spec.descending()).order());
    }
    order.addAll(orders(List.of(ARRIVAL)));
    this.sorter = sorter(ordering(order));
    this.merge = new UpsertMerge(spec.mergePlan(), spec, types, BEFORE, KIND);
    this.kindColumn = spec.kindColumn();
    this.asked = PendingRows.of(spec, types, attempt);
  }

  private static DataType[] types(WriteSpec spec) {
    List<DataType> types =
        new ArrayList<>(List.of(IntegerType$.MODULE$, LongType$.MODULE$, ByteType$.MODULE$));
    spec.fields().forEach(field -> types.add(field.type()));
    return types.toArray(DataType[]::new);
  }

  private static List<Integer> columns(int[] ordinals) {
    List<Integer> columns = new ArrayList<>();
    for (int ordinal : ordinals) {
      columns.add(BEFORE + ordinal);
    }
    return columns;
  }

  private static List<Integer> all(int count) {
    List<Integer> columns = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      columns.add(i);
    }
    return columns;
  }

  private static <T> Seq<T> seq(List<T> list) {
    return CollectionConverters.asScala(list).toSeq();
  }

  private Expression column(int index) {
    return new BoundReference(index, types[index], true);
  }

  private UnsafeProjection project(List<Integer> columns) {
    List<Expression> expressions = new ArrayList<>();
    columns.forEach(index -> expressions.add(column(index)));
    return UnsafeProjection.create(seq(expressions), seq(List.<Attribute>of()));
  }

  private List<SortOrder> orders(List<Integer> columns) {
    List<SortOrder> orders = new ArrayList<>();
    columns.forEach(index -> orders.add(ascending(column(index))));
    return orders;
  }

  /**
   * Separates partitions of -0.0 from those of 0.0, which Spark takes for equal, by their texts.
   */
  private List<SortOrder> signs(List<Integer> columns) {
    List<SortOrder> orders = new ArrayList<>();
    for (int index : columns) {
      if (types[index] instanceof FloatType || types[index] instanceof DoubleType) {
        orders.add(
            ascending(
                new Cast(
                    column(index),
                    DataTypes.StringType,
                    Option.empty(),
                    EvalMode$.MODULE$.LEGACY())));
      }
    }
    return orders;
  }

  private static SortOrder ascending(Expression expression) {
    return new SortOrder(
        expression, Ascending$.MODULE$, NullsFirst$.MODULE$, seq(List.<Expression>of()));
  }

  private static Ordering<InternalRow> ordering(List<SortOrder> orders) {
    return RowOrdering.create(seq(orders), seq(List.<Attribute>of()));
  }

  private UnsafeExternalRowSorter sorter(Ordering<InternalRow> ordering) throws IOException {
    StructType schema = new StructType();
    for (int i = 0; i < types.length; i++) {
      schema = schema.add("c" + i, types[i], true);
    }
    boolean partitioned = spec().partition().length > 0;
    int lead = BEFORE + (partitioned ? spec().partition()[0] : spec().trimmedKey()[0]);
    UnsafeExternalRowSorter.PrefixComputer prefixes =
        new UnsafeExternalRowSorter.PrefixComputer() {
          private final Prefix result = new Prefix();

          @Override
          public Prefix computePrefix(InternalRow row) {
            long value = SortPrefix.of(row, lead, types[lead]);
            result.value =
                partitioned ? value : (long) row.getInt(BUCKET) << SortPrefix.BITS | value;
            return result;
          }
        };
    long page = SparkEnv.get().memoryManager().pageSizeBytes();
    return UnsafeExternalRowSorter.create(
        schema, ordering, PrefixComparators.LONG, prefixes, page, false);
  }

  @Override
  public void write(InternalRow row) throws IOException {
    add(row, kindColumn < 0 ? DataFileWriter.INSERT : kindOf(row));
  }

  /** A changelog tells rows that are new from those that take the place of others. */
  @Override
  public void update(InternalRow row) throws IOException {
    if (spec().records() && kindColumn < 0) {
      add(row, DataFileWriter.UPDATE_AFTER);
    } else {
      write(row);
    }
  }

  @Override
  public void delete(InternalRow row) throws IOException {
    add(row, DataFileWriter.DELETE);
  }

  /** The kind that a row's own column says. */
  private byte kindOf(InternalRow row) {
    int kind =
        row.isNullAt(kindColumn) ? -1 : KINDS.indexOf(row.getUTF8String(kindColumn).toString());
    if (kind < 0) {
      throw new IllegalArgumentException(
          "column '"
              + spec().fields().get(kindColumn).name()
              + "' gives the kind of each row as +I, -U, +U or -D, but a row has another text or"
              + " null");
    }
    return (byte) kind;
  }

  private void add(InternalRow row, byte kind) throws IOException {
    if (!spec().admits(kind)) {
      return;
    }
    prefix.setInt(BUCKET, asked == null ? bucket(row) : 0);
    prefix.setLong(ARRIVAL, arrivals++);
    prefix.setByte(KIND, kind);
    UnsafeRow sorted = toSorted.apply(joined.apply(prefix, row));
    if (asked == null) {
      sorter.insertRow(sorted);
    } else if (asked.add(sorted)) {
      insertAsked();
    }
  }

  private void insertAsked() throws IOException {
    asked.answer(
        (row, bucket) -> {
          row.setInt(BUCKET, bucket);
          sorter.insertRow(row);
        });
  }

  @Override
  void finishAll() throws IOException {
    if (asked != null) {
      insertAsked();
    }
    Iterator<InternalRow> rows = sorter.sort();
    Bucket bucket = null;
    InternalRow firstKey = null;
    InternalRow firstChange = null;
    UnsafeRow waiting = null;
    long sequence = 0;
    while (waiting != null || rows.hasNext()) {
      // The sorter uses one row object for all rows, so a row that waits for its successor is a
      // copy.
      UnsafeRow row = waiting == null ? ((UnsafeRow) rows.next()).copy() : waiting;
      waiting = null;
      boolean newest = true;
      boolean lastOfBucket = true;
      if (rows.hasNext()) {
        waiting = ((UnsafeRow) rows.next()).copy();
        lastOfBucket = sameBucket.compare(row, waiting) != 0;
        newest = lastOfBucket || sameKey.compare(row, waiting) != 0;
      }
      if (bucket == null) {
        bucket = describe(row, BEFORE, row.getInt(BUCKET));
        sequence = spec().firstSequence();
      }
      if (spec().records()) {
        if (changelog == null) {
          changelog = openChangelog(bucket);
          firstChange = keyOf.apply(row).copy();
        }
        changelog.write(row, BEFORE, sequence, row.getByte(KIND));
        if (lastOfBucket || changelog.full()) {
          changelog.bounds(firstChange, keyOf.apply(row));
          finishChangelog(bucket, changelog);
          changelog = null;
        }
      }
      if (!newest) {
        merge.add(row);
        sequence += spec().records() ? 1 : 0;
        continue;
      }
      InternalRow left = merge.finish(row);
      if (file == null) {
        file = open(bucket);
        firstKey = keyOf.apply(row).copy();
      }
      file.write(left, BEFORE, sequence++, left.getByte(KIND));
      if (lastOfBucket || file.full()) {
        file.bounds(firstKey, keyOf.apply(row));
        finish(bucket, file);
        file = null;
        bucket = lastOfBucket ? null : bucket;
      }
    }
  }

  @Override
  public void close() throws IOException {
    sorter.cleanupResources();
  }
}
