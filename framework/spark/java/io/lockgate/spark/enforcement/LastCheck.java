package io.lockgate.spark.enforcement;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.enforcement.parts.StatementText;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.InputFileBlockLength;
import org.apache.spark.sql.catalyst.expressions.InputFileBlockStart;
import org.apache.spark.sql.catalyst.expressions.InputFileName;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.ReturnAnswer;
import org.apache.spark.sql.catalyst.plans.logical.Subquery;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.SparkStrategy;
import scala.Function1;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractPartialFunction;

/**
 * Refuses a statement with denied columns, all in one message, and plans a barrier as the plan
 * below it.
 *
 * <p>A strategy, which nobody can exclude as optimizer rules can be: without it there is no plan
 * for a barrier. Only where a statement is planned does it show which columns it uses.
 */
public final class LastCheck extends SparkStrategy {
  /** Keeps nothing, so that all sessions share it. */
  public static final LastCheck STRATEGY = new LastCheck();

  /** The same check before scans are planned; keeps nothing, so that all sessions share it. */
  public static final Rule<LogicalPlan> EARLY = new Early();

  private LastCheck() {}

  /**
   * Refuses a query with denied columns before its scans are planned, with all of them in one
   * message. Safety does not depend on it.
   *
   * <p>It notes the statement's text, for records of the scans that are planned next, and has reads
   * of other relations recorded. After that, barriers that hide nothing of what is used go, and
   * Spark plans their relations as it does without policies.
   */
  private static final class Early extends Rule<LogicalPlan> {
    @Override
    public LogicalPlan apply(LogicalPlan plan) {
      StatementText.optimizing(plan);
      if (plan instanceof Subquery) {
        return plan; // the check of the whole statement looks at its barriers
      }
      RequiredColumns needs = RequiredColumns.active();
      if (needs != null) {
        needs.end(plan);
      }
      check(plan);
      if (Bridge.isGoverned() && !PolicySession.isInside()) {
        Relations.recordReads(plan);
      }
      return plan.transformDown(new Opening());
    }
  }

  private static final class Opening extends AbstractPartialFunction<LogicalPlan, LogicalPlan> {
    @Override
    public boolean isDefinedAt(LogicalPlan plan) {
      return plan instanceof Barrier barrier && barrier.hidesNothing();
    }

    @Override
    @SuppressWarnings("unchecked") // a plan takes the place of one
    public <A extends LogicalPlan, B> B applyOrElse(A plan, Function1<A, B> otherwise) {
      return plan instanceof Barrier barrier && barrier.hidesNothing()
          ? (B) barrier.opened()
          : otherwise.apply(plan);
    }
  }

  @Override
  public Seq<SparkPlan> apply(LogicalPlan plan) {
    Barrier barrier = Barrier.of(plan);
    if (plan instanceof ReturnAnswer || barrier != null) {
      check(plan);
    }
    if (plan instanceof ReturnAnswer) {
      Govern.settingsSuit(SparkSession.active());
    }
    List<SparkPlan> planned =
        barrier != null ? List.of(new GovernedRowsExec(barrier.output(), barrier)) : List.of();
    return CollectionConverters.asScala(planned).toSeq();
  }

  /** Ends a statement that uses what is denied. */
  static void check(LogicalPlan plan) {
    Map<ObjectNode, Set<String>> used = new LinkedHashMap<>();
    collect(plan, null, used);
    if (!used.isEmpty()) {
      refuse(used, false, StatementText.start(plan, StatementText.LONGEST));
    }
  }

  /** Ends a statement that uses columns that are denied, or {@code whole} relations. */
  static void refuse(Map<ObjectNode, Set<String>> used, boolean whole, String statement) {
    refuse(
        used, whole, statement, "Policies changed while the statement was planned: run it again");
  }

  /** The same; {@code otherwise} says why, if policies permit these by now. */
  static void refuse(
      Map<ObjectNode, Set<String>> used, boolean whole, String statement, String otherwise) {
    ObjectNode request = Bridge.object();
    ArrayNode every = request.putArray("used");
    used.forEach(
        (relation, columns) -> {
          ObjectNode each = every.addObject();
          each.set("relation", relation);
          each.put("whole", whole);
          columns.forEach(each.putArray("columns")::add);
        });
    request.put("statement", statement);
    Bridge.ask("governance.refuse", request);
    throw Bridge.failure(otherwise);
  }

  private static void collect(LogicalPlan plan, Barrier above, Map<ObjectNode, Set<String>> used) {
    Barrier here = Barrier.of(plan);
    Barrier within = here != null ? here : above;
    if (here != null && here.guarded().refused()) {
      used.computeIfAbsent(here.guarded().relation(), any -> new LinkedHashSet<>());
      return;
    }
    if (plan instanceof SealedBarrier) {
      collect(here, above, used); // a leaf to all others
      return;
    }
    CollectionConverters.asJava(plan.expressions()).forEach(each -> expression(each, within, used));
    if (within == null && namesFiles(plan)) {
      Barrier below = below(plan);
      if (below != null) {
        used.computeIfAbsent(below.guarded().relation(), any -> new LinkedHashSet<>())
            .add("input_file_name()");
      }
    }
    CollectionConverters.asJava(plan.children()).forEach(child -> collect(child, within, used));
  }

  /** Tells whether a user's expression asks for the files of rows, as metadata columns do. */
  private static boolean namesFiles(LogicalPlan plan) {
    return CollectionConverters.asJava(plan.expressions()).stream()
        .anyMatch(
            each ->
                each.exists(
                    part ->
                        part instanceof InputFileName
                            || part instanceof InputFileBlockStart
                            || part instanceof InputFileBlockLength));
  }

  private static Barrier below(LogicalPlan plan) {
    Option<LogicalPlan> found = plan.find(each -> Barrier.of(each) != null);
    return found.isDefined() ? Barrier.of(found.get()) : null;
  }

  private static void expression(
      Expression found, Barrier within, Map<ObjectNode, Set<String>> used) {
    if (found instanceof DeniedColumn denied) {
      ObjectNode relation = within == null ? Bridge.object() : within.guarded().relation();
      used.computeIfAbsent(relation, any -> new LinkedHashSet<>()).add(denied.column());
    }
    if (found instanceof PlanExpression<?> query && query.plan() instanceof LogicalPlan plan) {
      collect(plan, null, used);
    }
    CollectionConverters.asJava(found.children()).forEach(child -> expression(child, within, used));
  }
}
