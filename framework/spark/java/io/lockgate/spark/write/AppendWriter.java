package io.lockgate.spark.write;

import java.io.IOException;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Writes rows of a table without primary key as they come; a few buckets are open at a time, the
 * one longest unused is closed.
 */
final class AppendWriter extends TaskWriter {
  private static final int OPEN = 16;

  private record Target(UnsafeRow partition, int bucket) {}

  private static final class Open {
    private final Bucket bucket;
    private final DataFileWriter file;

    Open(Bucket bucket, DataFileWriter file) {
      this.bucket = bucket;
      this.file = file;
    }
  }

  private final Map<Target, Open> open = new LinkedHashMap<>(16, 0.75f, true);
  private final UnsafeProjection partition;
  private Target lastTarget;
  private Open last;

  AppendWriter(WriteSpec spec, Configuration conf, String attempt) throws IOException {
    super(spec, conf, attempt);
    java.util.List<Expression> columns = new java.util.ArrayList<>();
    for (int ordinal : spec.partition()) {
      columns.add(new BoundReference(ordinal, spec.fields().get(ordinal).type(), true));
    }
    this.partition =
        UnsafeProjection.create(
            CollectionConverters.asScala(columns).toSeq(),
            CollectionConverters.asScala(java.util.List.<Attribute>of()).toSeq());
  }

  @Override
  public void write(InternalRow row) throws IOException {
    Open target = target(row);
    target.file.write(row, 0);
    if (target.file.full()) {
      open.remove(lastTarget);
      lastTarget = null;
      finish(target.bucket, target.file);
    }
  }

  private Open target(InternalRow row) throws IOException {
    int bucket = bucket(row);
    UnsafeRow values = partition.apply(row);
    if (lastTarget != null
        && lastTarget.bucket() == bucket
        && lastTarget.partition().equals(values)) {
      return last;
    }
    Target target = new Target(values.copy(), bucket);
    last = open.get(target);
    if (last == null) {
      if (open.size() == OPEN) {
        closeOldest();
      }
      Bucket described = describe(row, 0, bucket);
      last = new Open(described, open(described));
      open.put(target, last);
    }
    lastTarget = target;
    return last;
  }

  private void closeOldest() throws IOException {
    Iterator<Open> oldest = open.values().iterator();
    Open closing = oldest.next();
    oldest.remove();
    finish(closing.bucket, closing.file);
  }

  @Override
  public void delete(InternalRow row) {
    throw new UnsupportedOperationException(
        "rows can be deleted by key only in tables with a primary key");
  }

  @Override
  void finishAll() throws IOException {
    for (Open target : open.values()) {
      finish(target.bucket, target.file);
    }
    open.clear();
  }
}
