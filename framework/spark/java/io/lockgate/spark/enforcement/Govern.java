package io.lockgate.spark.enforcement;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.bridge.Users;
import io.lockgate.spark.enforcement.parts.ChangedSettings;
import io.lockgate.spark.enforcement.parts.PlanWalk;
import io.lockgate.spark.enforcement.parts.SinkLog;
import io.lockgate.spark.enforcement.parts.StatementText;
import io.lockgate.spark.scan.LoadedTable;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.sql.catalyst.analysis.ResolvedPersistentView;
import org.apache.spark.sql.catalyst.analysis.ResolvedTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNodeTag;
import org.apache.spark.sql.classic.SparkSession;

/**
 * Asks Python, after analysis, what the user may see of a statement's relations, and puts barriers
 * above those with hidden parts.
 *
 * <p>What is not hidden stays as it is, so that every way to read it quickly stays too.
 */
public final class Govern extends Rule<LogicalPlan> {
  /** The user who may see all of a relation, as was decided when its statement was analysed. */
  private static final TreeNodeTag<String> OPEN_TO = new TreeNodeTag<>("lockgate.open-to");

  private static final String DECLARED = "spark.lockgate.governed";

  /** The nodes that mean the same to everybody, as Python said. */
  private static final Set<String> FREE = ConcurrentHashMap.newKeySet();

  /** The settings that a session may change, as Python said. */
  private static final Set<String> FREE_SETTINGS = ConcurrentHashMap.newKeySet();

  private final SparkSession session;
  private final RefusedRelations refused;

  /** For one session. */
  public Govern(SparkSession session) {
    this.session = session;
    this.refused = new RefusedRelations(session);
  }

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    RequiredColumns needs = RequiredColumns.active();
    if (needs != null && !PolicySession.isInside()) {
      return needs.marked(session, plan);
    }
    if (!isGoverned(session) || PolicySession.isInside()) {
      return plan;
    }
    if (StreamRights.isOffered(plan)) {
      return plan;
    }
    StatementText.analysing();
    SealedBarrier.sealing(session);
    String user = Users.current();
    Question question = new Question(session, user, changedSettings(session));
    question.noteNamed(plan);
    StreamRights.Batch batch = StreamRights.Batch.of(plan);
    new PlanWalk(each -> noted(each, question, batch)).over(plan);
    if (batch != null) {
      batch.ask();
    }
    LogicalPlan seen = plan;
    if (!question.isEmpty()) {
      Map<LogicalPlan, JsonNode> decided = SinkLog.refusedBy(plan, () -> question.ask(plan));
      if (batch != null) {
        decided.forEach((each, answer) -> batch.check(each, question.described.get(each), answer));
      }
      Guard guard = new Guard(session, user);
      seen = new PlanWalk(each -> guarded(each, user, question, decided, guard)).over(plan);
    }
    refused.check(seen);
    return seen;
  }

  /** Notes a node of a statement, which may be the batch of a stream. */
  private static LogicalPlan noted(LogicalPlan plan, Question question, StreamRights.Batch batch) {
    if (batch == null || !batch.note(plan)) {
      return question.note(plan);
    }
    if (Barrier.of(plan) != null) {
      question.noteGuarded(Barrier.of(plan).guarded());
    }
    return plan;
  }

  /** Names the settings that this session has changed, but for those that Python said are free. */
  private static List<String> changedSettings(SparkSession session) {
    List<String> changed = ChangedSettings.of(session);
    changed.removeAll(FREE_SETTINGS);
    return changed;
  }

  /**
   * Asks again, where the rows of a relation are about to be computed, whether the session's
   * settings suit its row filter and masks: they may have changed since the statement was analysed.
   */
  static void settingsSuit(SparkSession session, Barrier.ProtectedRelation guarded) {
    List<String> changed = guarded.computed() ? changedSettings(session) : List.of();
    if (!changed.isEmpty() && isGoverned(session)) {
      Question question = new Question(session, guarded.user(), changed);
      question.noteGuarded(guarded);
      question.ask(null);
    }
  }

  /**
   * Asks again, where a statement is planned, whether the session has changed settings that only
   * the server sets: Spark keeps analysed plans, as a Connect server does those of its clients.
   */
  static void settingsSuit(SparkSession session) {
    List<String> changed = decides(session) ? changedSettings(session) : List.of();
    if (!changed.isEmpty()) {
      new Question(session, Users.current(), changed).ask(null);
    }
  }

  /**
   * Asks again, where rows of a relation are about to be computed, whether its user has the rights
   * that it was planned under: Spark keeps plans. A stream asks for each batch.
   */
  static void rightsHold(Barrier barrier) {
    if (!barrier.child().isStreaming()) {
      rightsHold(barrier.guarded().relation(), barrier.guarded().rights());
    }
  }

  /** The same of a relation; {@code rights} is null if nothing of it was hidden. */
  static void rightsHold(ObjectNode relation, String rights) {
    if (Bridge.isGoverned()) {
      ObjectNode request = Bridge.object().put("rights", rights).putNull("linked");
      request.set("planned", relation);
      Bridge.ask("governance.files", request);
    }
  }

  /** Tells whether rights are asked for here: not for what a policy itself says. */
  public static boolean decides(SparkSession session) {
    return isGoverned(session) && !PolicySession.isInside();
  }

  /**
   * Before Python is attached, use the server's start configuration; a session cannot override it.
   */
  static boolean isGoverned(SparkSession session) {
    return Bridge.isAttached()
        ? Bridge.isGoverned()
        : session.sparkContext().conf().getBoolean(DECLARED, false);
  }

  /**
   * One question about all relations of a statement, and about nodes and settings that are not
   * known as free.
   */
  private static final class Question {
    private final Statements statements;
    private final String user;
    private final Map<LogicalPlan, ObjectNode> described = new IdentityHashMap<>();
    private final List<LogicalPlan> order = new ArrayList<>();
    private final ArrayNode nodes = Bridge.JSON.createArrayNode();
    private final List<String> settings;
    private final ArrayNode guarded = Bridge.JSON.createArrayNode();

    Question(SparkSession session, String user, List<String> settings) {
      this.statements = new Statements(session);
      this.user = user;
      this.settings = settings;
    }

    /** Notes what there is to ask about; null for a plan whose parts are looked at. */
    LogicalPlan note(LogicalPlan plan) {
      ObjectNode found = relation(plan, user);
      if (found != null && described.put(plan, found) == null) {
        order.add(plan);
        Relations.options(plan, found).forEach(nodes::add);
      } else if (found == null
          && Barrier.of(plan) == null
          && !Relations.isOurs(plan)
          && !Relations.isFollowed(plan)
          && !FREE.contains(Statements.name(plan))) {
        nodes.add(statements.describe(plan));
      }
      if (found == null && Barrier.of(plan) != null) {
        noteGuarded(Barrier.of(plan).guarded());
      }
      Barrier barrier = Barrier.of(plan);
      ObjectNode call = barrier != null ? null : Statements.describeCall(plan);
      LogicalPlan relation = barrier != null ? Guard.relationOf(barrier) : plan;
      for (ObjectNode effect : Arrays.asList(call, Statements.describeCleaning(relation))) {
        if (effect != null) {
          nodes.add(effect);
        }
      }
      return found != null || Barrier.of(plan) != null ? plan : null;
    }

    /**
     * Notes a name that is all of a plan, as that of Spark's catalog when it describes a table: no
     * statement above it asks for a right.
     */
    void noteNamed(LogicalPlan plan) {
      if (plan instanceof ResolvedTable || plan instanceof ResolvedPersistentView) {
        nodes.add(statements.describeNamed(plan));
      }
    }

    void noteGuarded(Barrier.ProtectedRelation seen) {
      if (seen.computed()) {
        guarded.add(seen.relation());
      }
    }

    boolean isEmpty() {
      return order.isEmpty() && nodes.isEmpty() && settings.isEmpty();
    }

    Map<LogicalPlan, JsonNode> ask(LogicalPlan statement) {
      ObjectNode request = Bridge.object();
      ArrayNode relations = request.putArray("relations");
      order.forEach(each -> relations.add(described.get(each)));
      request.set("nodes", nodes);
      settings.forEach(request.putArray("settings")::add);
      request.set("guarded", guarded);
      request.put(
          "statement",
          statement == null ? null : StatementText.start(statement, StatementText.LONGEST));
      JsonNode answer = Bridge.ask("governance.decide", request);
      answer.get("free").forEach(name -> FREE.add(name.asText()));
      answer.get("free_settings").forEach(name -> FREE_SETTINGS.add(name.asText()));
      Map<LogicalPlan, JsonNode> decided = new IdentityHashMap<>();
      for (int i = 0; i < order.size(); i++) {
        decided.put(order.get(i), answer.get("relations").get(i));
      }
      return decided;
    }
  }

  /** A relation that a user's rights are to be asked for; null for what was decided, or is none. */
  static ObjectNode relation(LogicalPlan plan, String user) {
    Barrier barrier = Barrier.of(plan);
    if (barrier != null) {
      return barrier.guarded().user().equals(user) ? null : barrier.guarded().relation();
    }
    if (plan.getTagValue(OPEN_TO).exists(user::equals)) {
      return null;
    }
    ObjectNode found = Relations.describe(plan);
    return found == null ? Relations.describeOwn(plan) : found;
  }

  private static LogicalPlan guarded(
      LogicalPlan plan,
      String user,
      Question question,
      Map<LogicalPlan, JsonNode> decided,
      Guard guard) {
    JsonNode answer = decided.get(plan);
    if (answer == null) {
      return Barrier.of(plan) != null ? plan : null;
    }
    Barrier barrier = Barrier.of(plan);
    ObjectNode described = question.described.get(plan);
    if (answer.get("restricted").asBoolean() || barrier != null) {
      LogicalPlan relation = barrier != null ? Guard.relationOf(barrier) : plan;
      if (relation.isStreaming()) {
        StreamRights.check(relation, described, answer);
      }
      return guard.over(relation, Relations.output(plan), described, answer);
    }
    // A copy: Spark keeps relations for later statements, and views of streams for other users.
    boolean isNew = plan.isStreaming() && plan.getTagValue(OPEN_TO).isEmpty();
    LogicalPlan seen =
        answer.get("own").asBoolean()
            ? Relations.withOption(plan, LoadedTable.RIGHTS, answer.get("rights"))
            : isNew ? plan : plan.clone();
    seen.setTagValue(OPEN_TO, user);
    StreamRights.note(seen, described, answer);
    return seen;
  }
}
