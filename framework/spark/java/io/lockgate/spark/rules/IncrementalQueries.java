package io.lockgate.spark.rules;

import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.ExpressionInfo;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.Function1;
import scala.Tuple3;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction1;

/**
 * {@code SELECT * FROM lockgate_incremental_query('lake.db.t', 3, 5)}: a table with the read option
 * that says what to read of it. Lockgate's extension brings the functions.
 */
public final class IncrementalQueries {
  private static final Map<String, String> OPTIONS =
      Map.of(
          "lockgate_incremental_query", "incremental-between",
          "lockgate_incremental_between_timestamp", "incremental-between-timestamp");

  private IncrementalQueries() {}

  /** The functions, as extensions of a session take them. */
  public static List<
          Tuple3<FunctionIdentifier, ExpressionInfo, Function1<Seq<Expression>, LogicalPlan>>>
      functions() {
    return OPTIONS.entrySet().stream()
        .map(each -> function(each.getKey(), each.getValue()))
        .toList();
  }

  private static Tuple3<FunctionIdentifier, ExpressionInfo, Function1<Seq<Expression>, LogicalPlan>>
      function(String name, String option) {
    ExpressionInfo info = new ExpressionInfo(IncrementalQueries.class.getName(), name);
    return new Tuple3<>(new FunctionIdentifier(name), info, new Query(name, option));
  }

  /**
   * Throws IllegalArgumentException: Spark adds a place to AnalysisException, which PySpark cannot
   * print without a class of error.
   */
  private static final class Query extends AbstractFunction1<Seq<Expression>, LogicalPlan> {
    private final String name;
    private final String option;

    Query(String name, String option) {
      this.name = name;
      this.option = option;
    }

    @Override
    public LogicalPlan apply(Seq<Expression> given) {
      List<Expression> arguments = CollectionConverters.asJava(given);
      if (arguments.size() != 3) {
        throw new IllegalArgumentException(
            name + " takes a table's name and two ends, such as " + name + "('lake.db.t', 3, 5)");
      }
      Map<String, String> options =
          Map.of(option, text(arguments.get(1)) + "," + text(arguments.get(2)));
      return new UnresolvedRelation(
          tableName(text(arguments.get(0))), new CaseInsensitiveStringMap(options), false);
    }

    private Seq<String> tableName(String table) {
      try {
        return SparkSession.active().sessionState().sqlParser().parseMultipartIdentifier(table);
      } catch (Exception malformed) {
        throw new IllegalArgumentException(
            name + ": " + table + " is not the name of a table such as lake.db.t");
      }
    }

    private String text(Expression argument) {
      if (!argument.foldable()) {
        throw new IllegalArgumentException(name + " takes constants, not " + argument.sql());
      }
      return String.valueOf(argument.eval(InternalRow.empty()));
    }
  }
}
