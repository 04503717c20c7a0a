package io.lockgate.spark.enforcement;

import org.apache.spark.Partition;
import org.apache.spark.TaskContext;
import org.apache.spark.rdd.RDD;
import scala.collection.Iterator;
import scala.reflect.ClassTag;

/**
 * What is read of files, after each task has looked whether they are where they were when a right
 * to them was asked for.
 *
 * <p>Spark keeps what it has made: a frame that is collected once more runs tasks, and nothing on
 * the driver.
 */
final class CheckedFilesRdd<T> extends RDD<T> {
  private static final long serialVersionUID = 1L;

  private final FilePlaces places;
  private final ClassTag<T> kind;

  CheckedFilesRdd(RDD<T> read, FilePlaces places, ClassTag<T> kind) {
    super(read, kind);
    this.places = places;
    this.kind = kind;
  }

  @Override
  public Partition[] getPartitions() {
    return firstParent(kind).partitions();
  }

  @Override
  public Iterator<T> compute(Partition split, TaskContext context) {
    places.check(split);
    return firstParent(kind).iterator(split, context);
  }
}
