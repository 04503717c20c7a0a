package io.lockgate.spark.enforcement;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.bridge.RequestSessions;
import io.lockgate.spark.enforcement.parts.PlanWalk;
import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.CommandExecutionMode;

/**
 * The needs of a statement: the columns and rows of each relation that it uses, and its nodes.
 *
 * <p>The statement is analysed and optimized with a barrier above every relation, under which every
 * column is marked as one that may not be used. What is left when its scans would be planned is
 * what the statement uses. Nothing is read, and nobody is asked about rights.
 */
public final class RequiredColumns {
  private static final ThreadLocal<RequiredColumns> ACTIVE = new ThreadLocal<>();

  private static final UsedColumns NOTHING = new UsedColumns(Set.of(), Map.of());

  private final Map<ObjectNode, List<UsedColumns>> used = new IdentityHashMap<>();
  private final List<ObjectNode> relations = new ArrayList<>();
  private final ArrayNode nodes = Bridge.JSON.createArrayNode();

  private final boolean byResults;

  private RequiredColumns(boolean byResults) {
    this.byResults = byResults;
  }

  /** Ends the optimizer once all that tells is done. */
  private static final class Done extends RuntimeException {
    private static final long serialVersionUID = 1L;

    Done() {
      super(null, null, false, false);
    }
  }

  /**
   * The needs of a statement, as Python reads them; {@code byResults} counts only columns that
   * results come from or that are compared with columns.
   */
  public static String of(SparkSession spark, String sql, boolean byResults) throws ParseException {
    return RequestSessions.within(spark, () -> collected(spark, sql, byResults));
  }

  private static String collected(SparkSession spark, String sql, boolean byResults)
      throws ParseException {
    RequiredColumns needs = new RequiredColumns(byResults);
    LogicalPlan parsed = spark.sessionState().sqlParser().parsePlan(sql);
    ACTIVE.set(needs);
    try {
      var execution = spark.sessionState().executePlan(parsed, CommandExecutionMode.SKIP());
      try {
        execution.optimizedPlan();
      } catch (Done e) {
        // all is known
      }
    } finally {
      ACTIVE.remove();
    }
    return needs.json().toString();
  }

  /** Tells whether this thread analyses a statement only to know its needs. */
  public static boolean isCollecting() {
    return active() != null;
  }

  /** The needs that this thread collects, or null. */
  static RequiredColumns active() {
    return ACTIVE.get();
  }

  /** Notes the columns that an optimized plan uses, and ends the optimizer. */
  void end(LogicalPlan plan) {
    new UsedColumns.Walk(
            (relation, found) ->
                used.computeIfAbsent(relation, any -> new ArrayList<>()).add(found),
            byResults)
        .over(plan);
    throw new Done();
  }

  /** The plan with a barrier above every relation. */
  LogicalPlan marked(SparkSession session, LogicalPlan plan) {
    Guard guard = new Guard(session, "");
    Statements statements = new Statements(session);
    return new PlanWalk(each -> marked(guard, statements, each)).over(plan);
  }

  private LogicalPlan marked(Guard guard, Statements statements, LogicalPlan plan) {
    if (plan instanceof Barrier) {
      return plan;
    }
    ObjectNode found = Relations.describe(plan);
    if (found == null) {
      if (!Relations.isOurs(plan) && !Relations.isFollowed(plan)) {
        nodes.add(statements.describe(plan));
      }
      return null;
    }
    relations.add(found);
    return guard.over(plan, Relations.output(plan), found, allDenied(found));
  }

  private static ObjectNode allDenied(ObjectNode relation) {
    ObjectNode decided = Bridge.object().put("restricted", true).put("refused", false);
    decided.put("removable", false);
    ArrayNode denied = decided.putArray("denied");
    relation.get("columns").forEach(column -> denied.add(column.get("name").asText()));
    decided.putObject("masks");
    return decided.put("rights", "").putNull("filter").putNull("grant");
  }

  private ObjectNode json() {
    ObjectNode message = Bridge.object();
    ArrayNode every = message.putArray("used");
    for (ObjectNode relation : relations) {
      for (UsedColumns found : used.getOrDefault(relation, List.of(NOTHING))) {
        every.add(found.json().set("relation", relation));
      }
    }
    message.set("nodes", nodes);
    return message;
  }
}
