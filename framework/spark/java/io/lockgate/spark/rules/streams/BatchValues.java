package io.lockgate.spark.rules.streams;

import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.catalog.SystemTable;
import io.lockgate.spark.files.batches.EarlyAnswer;
import io.lockgate.spark.messages.Operations;
import io.lockgate.spark.messages.RowsJson;
import io.lockgate.spark.messages.SingleRowsRequest;
import io.lockgate.spark.messages.SystemRowsRequest;
import io.lockgate.spark.scan.PlannedBatch;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.ScalarSubquery;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.ColumnarRule;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;

/**
 * Asks for the values of all system tables of one row that a micro-batch reads, such as the
 * snapshots of its lookups, in one question and while Spark plans the rest.
 *
 * <p>A lookup reads {@code t$pin} by a scalar subquery. Spark would optimize and plan each of them
 * like a query, for every micro-batch, which takes longer than the lookups. All other queries keep
 * their subqueries: what is only shown must not ask.
 */
public final class BatchValues extends Rule<LogicalPlan> {
  /** Asks, after all that decides about relations: what was decided is in their options. */
  public static final Rule<LogicalPlan> RULE = new BatchValues();

  /** Puts the values into physical plans. */
  public static final Rule<SparkPlan> ANSWERS = new Answers();

  /** The same where the stages of a plan are not adaptive. */
  public static final ColumnarRule ANSWERS_OF_PLANS = new OfPlans();

  private BatchValues() {}

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    if (!PlannedBatch.isPlanned(SparkSession.active().sparkContext())) {
      return plan;
    }
    Questions questions = new Questions();
    questions.note(plan);
    return questions.numbers.isEmpty() ? plan : questions.answered(plan);
  }

  /** The relation of a system table of one row that a subquery reads whole, or null. */
  private static DataSourceV2Relation read(Expression expression) {
    LogicalPlan plan = expression instanceof ScalarSubquery query ? query.plan() : null;
    while (plan instanceof SubqueryAlias alias) {
      plan = alias.child();
    }
    return plan instanceof DataSourceV2Relation relation
            && relation.table() instanceof SystemTable table
            && table.isSingleValue()
        ? relation
        : null;
  }

  private static SystemRowsRequest question(DataSourceV2Relation relation) {
    return ((SystemTable) relation.table()).rowsRequest(relation.options());
  }

  /** The questions of one micro-batch, equal ones once. */
  private static final class Questions {
    private final Map<SystemRowsRequest, Integer> numbers = new LinkedHashMap<>();
    private EarlyAnswer<RowsJson> answer;

    LogicalPlan note(LogicalPlan plan) {
      return plan.mapChildren(this::note).mapExpressions(this::noteExpression);
    }

    private Expression noteExpression(Expression expression) {
      DataSourceV2Relation relation = read(expression);
      if (relation != null) {
        numbers.putIfAbsent(question(relation), numbers.size());
      }
      return expression.mapChildren(this::noteExpression);
    }

    LogicalPlan answered(LogicalPlan plan) {
      SingleRowsRequest request = new SingleRowsRequest(List.copyOf(numbers.keySet()));
      answer = EarlyAnswer.of(() -> Bridge.ask(Operations.SYSTEM_SINGLE_ROWS, request));
      return answeredBelow(plan);
    }

    private LogicalPlan answeredBelow(LogicalPlan plan) {
      return plan.mapChildren(this::answeredBelow).mapExpressions(this::answeredExpression);
    }

    private Expression answeredExpression(Expression expression) {
      DataSourceV2Relation relation = read(expression);
      if (relation == null) {
        return expression.mapChildren(this::answeredExpression);
      }
      SystemTable table = (SystemTable) relation.table();
      return new BatchValue(table.rowType(), answer, numbers.get(question(relation)), table.name());
    }
  }

  private static final class Answers extends Rule<SparkPlan> {
    @Override
    public SparkPlan apply(SparkPlan plan) {
      return plan.mapChildren(this::apply).mapExpressions(Answers::answered);
    }

    private static Expression answered(Expression expression) {
      return expression instanceof BatchValue value
          ? value.value()
          : expression.mapChildren(Answers::answered);
    }
  }

  private static final class OfPlans extends ColumnarRule {
    @Override
    public Rule<SparkPlan> preColumnarTransitions() {
      return ANSWERS;
    }
  }
}
