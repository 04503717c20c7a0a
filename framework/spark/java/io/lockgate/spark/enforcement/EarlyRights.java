package io.lockgate.spark.enforcement;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.bridge.Failure;
import io.lockgate.spark.bridge.RequestSessions;
import io.lockgate.spark.bridge.Users;
import io.lockgate.spark.enforcement.parts.PlanWalk;
import io.lockgate.spark.enforcement.parts.StatementText;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.analysis.AnalysisContext;
import org.apache.spark.sql.catalyst.analysis.RelationTimeTravel;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.analysis.UnresolvedTable;
import org.apache.spark.sql.catalyst.analysis.UnresolvedTableOrView;
import org.apache.spark.sql.catalyst.plans.logical.CacheTable;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.InsertIntoStatement;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.UncacheTable;
import org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.classic.SparkSession;

/**
 * Refuses statements that are wrong, and name a relation of which their user may see nothing,
 * before Spark's own error shows its columns.
 *
 * <p>Most errors wait for {@link Govern}, which refuses first. Some do not: a column that {@code
 * USING}, {@code EXCEPT}, {@code ALTER TABLE} or {@code INSERT} does not find ends the analysis at
 * once, with all columns that there are. So {@link Holding} marks relations, tables that statements
 * name, and queries whose rows are written, before anything is resolved, and {@link Resolving}
 * takes the marks off.
 */
public final class EarlyRights {
  private static final int MOST_NAMES = 10_000;

  /** An INSERT that Spark 4.3 has not found the name of its table for. */
  private static final String LATE_INSERT = "UnresolvedInsert";

  /**
   * Names by which users have found what they may see. A right that was taken away since then shows
   * columns that its user knew.
   */
  private static final Set<String> SEEN = Collections.synchronizedSet(new LinkedHashSet<>());

  /** Whether a statement that is to be refused is analysed for what else its refusal names. */
  private static final ThreadLocal<Boolean> REFUSING = ThreadLocal.withInitial(() -> false);

  private EarlyRights() {}

  private static boolean isOff(SparkSession session) {
    return REFUSING.get() || RequiredColumns.active() != null || !Govern.decides(session);
  }

  /** Tells whether a statement writes a table that is none of its children; its last is a query. */
  private static boolean writes(LogicalPlan plan) {
    return plan instanceof InsertIntoStatement
        || plan instanceof V2WriteCommand
        || plan.nodeName().equals(LATE_INSERT);
  }

  /** The table that a statement writes, without the names that it has there. */
  private static LogicalPlan target(LogicalPlan plan) {
    LogicalPlan found =
        plan instanceof InsertIntoStatement insert
            ? insert.table()
            : plan instanceof V2WriteCommand write ? (LogicalPlan) write.table() : null;
    while (found instanceof SubqueryAlias alias) {
      found = alias.child();
    }
    return found;
  }

  /** Marks the relations that a statement names. */
  public static final class Holding extends Rule<LogicalPlan> {
    private final SparkSession session;

    /** For one session. */
    public Holding(SparkSession session) {
      this.session = session;
    }

    @Override
    public LogicalPlan apply(LogicalPlan plan) {
      return isOff(session) ? plan : held(plan);
    }

    private LogicalPlan held(LogicalPlan plan) {
      if (plan instanceof UnresolvedRelation relation) {
        String name = name(relation);
        return SEEN.contains(name) ? plan : new HeldRelation(plan, name);
      } else if (plan instanceof RelationTimeTravel) {
        return new HeldRelation(plan, null);
      }
      boolean isDone =
          plan.analyzed()
              || plan instanceof HeldRelation
              || plan instanceof HeldQuery
              || plan instanceof CacheTable
              || plan instanceof UncacheTable;
      if (isDone) {
        return plan;
      }
      LogicalPlan query = writes(plan) ? plan.children().last() : null;
      return plan.mapChildren(each -> each == query ? heldQuery(each) : part(plan, each));
    }

    private LogicalPlan heldQuery(LogicalPlan query) {
      return query instanceof HeldQuery ? query : new HeldQuery(held(query));
    }

    private LogicalPlan part(LogicalPlan plan, LogicalPlan child) {
      boolean isNamed = child instanceof UnresolvedTable || child instanceof UnresolvedTableOrView;
      return plan instanceof Command && isNamed ? new HeldRelation(child, null) : held(child);
    }

    private String name(UnresolvedRelation relation) {
      AnalysisContext context = AnalysisContext.get();
      return String.join(
          "\n",
          RequestSessions.nameOf(session),
          Users.current(),
          session.sessionState().catalogManager().currentCatalog().name(),
          String.join(".", session.sessionState().catalogManager().currentNamespace()),
          context.catalogAndNamespace().mkString("."),
          relation.multipartIdentifier().mkString("\0"));
    }
  }

  /** Asks about marked relations as they are resolved, and takes the marks off. */
  public static final class Resolving extends Rule<LogicalPlan> {
    private final SparkSession session;

    /** For one session. */
    public Resolving(SparkSession session) {
      this.session = session;
    }

    /**
     * A relation that was marked, or a table whose statement was.
     *
     * @param statement what names the table; null for a relation that is read
     * @param name the name that a relation was looked up by, or null
     */
    private record Found(LogicalPlan statement, LogicalPlan plan, String name) {}

    @Override
    public LogicalPlan apply(LogicalPlan plan) {
      List<Found> found = new ArrayList<>();
      LogicalPlan bare = released(plan, plan, found);
      if (found.isEmpty() || isOff(session)) {
        return bare; // a first answer of Python may say that nobody decides, after relations were
        // marked
      }
      Map<ObjectNode, Set<String>> refused = new LinkedHashMap<>();
      try {
        ask(plan, found, refused);
      } catch (Exception e) {
        if (isRefusal(e)) {
          analyze(bare);
        }
        throw Failure.within(e);
      }
      if (!refused.isEmpty()) {
        analyze(bare);
        LastCheck.refuse(refused, false, StatementText.start(bare, StatementText.LONGEST));
      }
      if (SEEN.size() > MOST_NAMES) {
        SEEN.clear();
      }
      found.stream().map(Found::name).filter(each -> each != null).forEach(SEEN::add);
      return bare;
    }

    private LogicalPlan released(LogicalPlan plan, LogicalPlan above, List<Found> found) {
      if (plan.analyzed()) {
        return plan;
      } else if (plan instanceof HeldRelation one && one.child().resolved()) {
        found.add(new Found(above instanceof Command ? above : null, one.child(), one.name()));
        return one.child();
      } else if (plan instanceof HeldQuery query && isKnown(target(above))) {
        found.add(new Found(above, target(above), null));
        return released(query.child(), query, found);
      }
      return plan.mapChildren(each -> released(each, plan, found));
    }

    private static boolean isKnown(LogicalPlan table) {
      return table != null && table.resolved();
    }

    private void ask(LogicalPlan plan, List<Found> found, Map<ObjectNode, Set<String>> refused) {
      String user = Users.current();
      Statements statements = new Statements(session);
      List<ObjectNode> relations = new ArrayList<>();
      ObjectNode request = Bridge.object();
      ArrayNode asked = request.putArray("relations");
      ArrayNode nodes = request.putArray("nodes");
      for (Found each : found) {
        ObjectNode named =
            each.statement() == null
                ? null
                : statements.describeTarget(each.statement(), each.plan());
        if (named != null) {
          nodes.add(named);
        } else {
          new PlanWalk(inner -> noted(inner, user, relations, refused)).over(each.plan());
        }
      }
      if (relations.isEmpty() && nodes.isEmpty()) {
        return;
      }
      relations.forEach(asked::add);
      request.putArray("settings");
      request.putArray("guarded");
      request.put("statement", StatementText.start(plan, StatementText.LONGEST));
      JsonNode answers = Bridge.ask("governance.decide", request).get("relations");
      for (int i = 0; i < relations.size(); i++) {
        if (answers.get(i).get("refused").asBoolean()) {
          refused.put(relations.get(i), Set.of());
        }
      }
    }

    private static LogicalPlan noted(
        LogicalPlan plan,
        String user,
        List<ObjectNode> relations,
        Map<ObjectNode, Set<String>> refused) {
      Barrier barrier = Barrier.of(plan);
      ObjectNode found = Govern.relation(plan, user);
      if (found != null && !found.get("kind").asText().equals("system")) {
        relations.add(found);
      } else if (barrier != null && barrier.guarded().refused()) { // of a view
        refused.put(barrier.guarded().relation(), Set.of());
      }
      return found != null || barrier != null ? plan : null;
    }

    /** Tries the rest of the analysis, whose refusal names columns and all relations. */
    private void analyze(LogicalPlan plan) {
      REFUSING.set(true);
      try {
        session
            .sessionState()
            .analyzer()
            .org$apache$spark$sql$catalyst$analysis$Analyzer$$executeSameContext(plan.clone());
      } catch (Exception e) {
        if (isRefusal(e)) {
          throw Failure.within(e);
        }
      } finally {
        REFUSING.remove();
      }
    }

    private static boolean isRefusal(Exception found) {
      return found instanceof Failure ours && "AccessDeniedError".equals(ours.pythonType());
    }
  }
}
