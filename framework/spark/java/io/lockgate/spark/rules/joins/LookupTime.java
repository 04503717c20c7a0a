package io.lockgate.spark.rules.joins;

import io.lockgate.spark.bridge.Bridge;
import java.util.List;
import java.util.stream.Collectors;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The time of a lookup join: a column of the stream, as Flink wants it, which says that rows are
 * joined when they are processed. Nothing is read of it.
 */
final class LookupTime {
  /** Metadata of the column by which Spark knows the time of an event. */
  private static final String WATERMARK = "spark.watermarkDelayMs";

  private static final String INSTEAD =
      "; a lookup joins with the table as it is when a row is processed: name a column for that"
          + " time, or write FOR SYSTEM_TIME AS OF PROCTIME()";

  private final SparkSession session;

  LookupTime(SparkSession session) {
    this.session = session;
  }

  /** Throws AnalysisException unless {@code name} is a timestamp of the stream. */
  void check(String name, LogicalPlan stream, LogicalPlan table) {
    if (name == null) {
      return;
    }
    NamedExpression found = find(name, stream);
    if (found == null) {
      throw refused(name, whyMissing(name, stream, table));
    }
    DataType type = ((Expression) found).dataType();
    if (!isTime(type)) {
      throw refused(name, " is not a time, but " + type.sql());
    }
    if (found.metadata().contains(WATERMARK)) {
      throw refused(name, " is the time of an event: it has a watermark");
    }
  }

  private static RuntimeException refused(String name, String why) {
    return Bridge.failure("FOR SYSTEM_TIME AS OF " + name + ": " + name + why + INSTEAD);
  }

  private String whyMissing(String name, LogicalPlan stream, LogicalPlan table) {
    if (find(name, table) != null) {
      return " is a column of the table that is looked up in, not of the stream";
    }
    String times =
        columns(stream).stream()
            .filter(column -> isTime(column.dataType()))
            .map(NamedExpression::qualifiedName)
            .collect(Collectors.joining(", "));
    return " is not a column of the stream, whose times are " + (times.isEmpty() ? "none" : times);
  }

  private static boolean isTime(DataType type) {
    return type.equals(DataTypes.TimestampType) || type.equals(DataTypes.TimestampNTZType);
  }

  private static List<Attribute> columns(LogicalPlan plan) {
    return CollectionConverters.asJava(plan.output());
  }

  private NamedExpression find(String name, LogicalPlan plan) {
    try {
      Seq<String> parts = session.sessionState().sqlParser().parseMultipartIdentifier(name);
      Option<NamedExpression> found = plan.resolve(parts, session.sessionState().conf().resolver());
      return found.getOrElse(() -> null);
    } catch (ParseException malformed) {
      return null;
    }
  }
}
