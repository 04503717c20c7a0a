package io.lockgate.spark.rules.results;

import io.lockgate.spark.enforcement.parts.DriverRowsExec;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** The kept rows of an equal query. */
public final class CachedResultExec extends DriverRowsExec {
  private final transient Results.Kept kept;

  public CachedResultExec(Seq<Attribute> output, Results.Kept kept) {
    super(output, kept);
    this.kept = kept;
  }

  @Override
  protected InternalRow[] rows() {
    return kept.rows();
  }

  @Override
  public Iterator<Object> stringArgs() {
    long seconds = (System.currentTimeMillis() - kept.at()) / 1000;
    String text = kept.rows().length + " rows, computed " + seconds + " s ago";
    return CollectionConverters.asScala(List.<Object>of(output(), text).iterator());
  }
}
