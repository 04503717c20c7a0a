package io.lockgate.spark.rules;

import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.analysis.TableFunctionRegistry;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction1;

/**
 * {@code SELECT * FROM lockgate_incremental_query('lake.db.t', 3, 5)}: a table with the read option that says what to read of it.
 * The functions are in each session that has a Lockgate catalog, without a conf.
 */
public final class IncrementalQueries {
  private static final Map<String, String> OPTIONS =
      Map.of(
          "lockgate_incremental_query", "incremental-between",
          "lockgate_incremental_between_timestamp", "incremental-between-timestamp");

  private IncrementalQueries() {}

  /** Adds the functions to a session; they stay as they are if they are there. */
  public static void install(SparkSession session) {
    TableFunctionRegistry functions = session.sessionState().tableFunctionRegistry();
    OPTIONS.forEach(
        (name, option) -> functions.createOrReplaceTempFunction(name, new Query(session, name, option), "scala_udf"));
  }

  /** Throws IllegalArgumentException: Spark adds a place to AnalysisException, which PySpark cannot print without a class of error. */
  private static final class Query extends AbstractFunction1<Seq<Expression>, LogicalPlan> {
    private final SparkSession session;
    private final String name;
    private final String option;

    Query(SparkSession session, String name, String option) {
      this.session = session;
      this.name = name;
      this.option = option;
    }

    @Override
    public LogicalPlan apply(Seq<Expression> given) {
      List<Expression> arguments = CollectionConverters.asJava(given);
      if (arguments.size() != 3) {
        throw new IllegalArgumentException(name + " takes a table's name and two ends, such as " + name + "('lake.db.t', 3, 5)");
      }
      Map<String, String> options = Map.of(option, text(arguments.get(1)) + "," + text(arguments.get(2)));
      return new UnresolvedRelation(tableName(text(arguments.get(0))), new CaseInsensitiveStringMap(options), false);
    }

    private Seq<String> tableName(String table) {
      try {
        return session.sessionState().sqlParser().parseMultipartIdentifier(table);
      } catch (Exception malformed) {
        throw new IllegalArgumentException(name + ": " + table + " is not the name of a table such as lake.db.t");
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
