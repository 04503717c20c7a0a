package io.lockgate.spark.rules.joins;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.bridge.RequestSessions;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Predicate;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import scala.jdk.javaapi.CollectionConverters;

/** The plan of one lookup join, which Python makes as it does for {@code lookup_join}. */
final class LookupPlan {
  private static final String OPERATION = "lookup.join";

  private final SparkSession session;
  private final Join join;
  private final LookupSide side;
  private final JoinCondition condition;
  private final List<Attribute> wanted;

  /** Conditions that Python may answer, and those that are asked of the joined rows. */
  private final List<Expression> offered = new ArrayList<>();

  private final List<Expression> others = new ArrayList<>();

  LookupPlan(SparkSession session, Join join, LookupSide side, Predicate<Attribute> isWanted) {
    this.session = session;
    this.join = join;
    this.side = side;
    new LookupTime(session).check(side.table().time(), join.left(), join.right());
    Expression given = join.condition().getOrElse(() -> null);
    this.condition =
        new JoinCondition(given == null ? null : side.onTable(given), join.left(), side.table());
    this.wanted = side.output().stream().filter(isWanted).toList();
  }

  /** The kind of the join, as {@code lookup_join} spells it. */
  private String how() {
    String name = join.joinType().sql().toLowerCase(Locale.ROOT).replace(" outer", "");
    return name.equals("cross") ? "inner" : name;
  }

  /** The join of a stream whose own lookups are planned. */
  LogicalPlan over(LogicalPlan left) {
    boolean keepsAll = !how().equals("inner");
    StreamKeys keys = new StreamKeys(left, condition, keepsAll);
    StreamSide stand = StreamSide.of(keys.plan(), new StreamStatistics(session, keys.plan()));
    String handle = JoinFrames.offer(Dataset.ofRows(session, stand));
    JsonNode answer;
    Dataset<?> joined;
    try {
      ObjectNode request = request(keys).put("handle", handle);
      answer = RequestSessions.within(session, () -> Bridge.ask(OPERATION, request));
    } finally {
      joined = JoinFrames.take(handle);
    }
    LogicalPlan made = stand.replacedIn(joined.queryExecution().analyzed(), keys.plan());
    answer.get("kept").forEach(number -> others.add(offered.get(number.asInt())));
    JoinedColumns columns = new JoinedColumns(made, answer.get("columns"), keys);
    return columns.named(left, wanted, side, others, keepsAll);
  }

  private ObjectNode request(StreamKeys keys) {
    ObjectNode request = Bridge.object().put("alias", side.alias()).put("how", how());
    side.name().forEach(request.putArray("table")::add);
    keys.keys().forEach(request.putObject("keys")::put);
    ArrayNode conditions = request.putArray("conditions");
    others.addAll(condition.onBoth);
    for (Expression each : condition.onTable) {
      JsonNode json = TableConditions.json(each, side.table().child());
      if (json == null) {
        others.add(each);
      } else {
        offered.add(each);
        ObjectNode one = conditions.addObject();
        one.set("condition", json);
        names(each).forEach(one.putArray("columns")::add);
      }
    }
    Set<String> used = new TreeSet<>();
    wanted.forEach(column -> used.add(side.column(column).name()));
    ArrayNode rest = request.putArray("others");
    for (Expression each : others) {
      names(each).forEach(used::add);
      rest.add(String.join(", ", qualified(each)));
    }
    used.forEach(request.putArray("columns")::add);
    side.table().options().forEach(request.putObject("options")::put);
    return request;
  }

  /** The columns of the table that a condition uses. */
  private List<String> names(Expression condition) {
    return columns(condition).stream()
        .filter(column -> side.column(column) != null)
        .map(Attribute::name)
        .toList();
  }

  private List<String> qualified(Expression condition) {
    return columns(condition).stream().map(Attribute::qualifiedName).toList();
  }

  private static List<Attribute> columns(Expression condition) {
    return CollectionConverters.asJava(condition.references().toSeq());
  }
}
