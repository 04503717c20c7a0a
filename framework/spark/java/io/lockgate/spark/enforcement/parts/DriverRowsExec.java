package io.lockgate.spark.enforcement.parts;

import java.util.Arrays;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.physical.Partitioning;
import org.apache.spark.sql.catalyst.plans.physical.SinglePartition$;
import scala.Tuple2;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.reflect.ClassTag$;

/** Rows that the driver has. Where only they are asked for, no job is started. */
public abstract class DriverRowsExec extends LeafRowsExec {
  protected DriverRowsExec(Seq<Attribute> output, Object origin) {
    super(output, origin);
  }

  /** The rows, for one execution. */
  protected abstract InternalRow[] rows();

  @Override
  public Partitioning outputPartitioning() {
    return SinglePartition$.MODULE$;
  }

  @Override
  public RDD<InternalRow> doExecute() {
    Seq<InternalRow> rows = CollectionConverters.asScala(Arrays.asList(rows())).toSeq();
    return sparkContext().parallelize(rows, 1, ClassTag$.MODULE$.apply(InternalRow.class));
  }

  @Override
  public InternalRow[] executeCollect() {
    return rows().clone();
  }

  @Override
  public Tuple2<Object, Iterator<InternalRow>> executeCollectIterator() {
    InternalRow[] rows = rows();
    return new Tuple2<>((long) rows.length, iterator(rows));
  }

  @Override
  public Iterator<InternalRow> executeToIterator() {
    return iterator(rows());
  }

  private static Iterator<InternalRow> iterator(InternalRow[] rows) {
    return CollectionConverters.asScala(Arrays.asList(rows).iterator());
  }

  @Override
  public InternalRow[] executeTake(int most) {
    InternalRow[] rows = rows();
    return Arrays.copyOf(rows, Math.min(most, rows.length));
  }

  @Override
  public InternalRow[] executeTail(int most) {
    InternalRow[] rows = rows();
    return Arrays.copyOfRange(rows, Math.max(0, rows.length - most), rows.length);
  }
}
