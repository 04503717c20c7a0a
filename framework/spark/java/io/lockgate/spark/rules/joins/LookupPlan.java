package io.lockgate.spark.rules.joins;

import com.fasterxml.jackson.databind.JsonNode;
import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.bridge.RequestSessions;
import io.lockgate.spark.messages.Operations;
import io.lockgate.spark.messages.SqlJoin;
import io.lockgate.spark.messages.SqlJoinAnswer;
import io.lockgate.spark.messages.TableCondition;
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
    SqlJoinAnswer answer;
    Dataset<?> joined;
    try {
      SqlJoin request = request(keys, handle);
      answer = RequestSessions.within(session, () -> Bridge.ask(Operations.LOOKUP_JOIN, request));
    } finally {
      joined = JoinFrames.take(handle);
    }
    LogicalPlan made = stand.replacedIn(joined.queryExecution().analyzed(), keys.plan());
    answer.kept().forEach(number -> others.add(offered.get(Math.toIntExact(number))));
    JoinedColumns columns = new JoinedColumns(made, answer.columns(), keys);
    return columns.named(left, wanted, side, others, keepsAll);
  }

  private SqlJoin request(StreamKeys keys, String handle) {
    List<TableCondition> conditions = new ArrayList<>();
    others.addAll(condition.onBoth);
    for (Expression each : condition.onTable) {
      JsonNode json = TableConditions.json(each, side.table().child());
      if (json == null) {
        others.add(each);
      } else {
        offered.add(each);
        conditions.add(new TableCondition(json, names(each)));
      }
    }
    Set<String> used = new TreeSet<>();
    wanted.forEach(column -> used.add(side.column(column).name()));
    List<String> rest = new ArrayList<>();
    for (Expression each : others) {
      used.addAll(names(each));
      rest.add(String.join(", ", qualified(each)));
    }
    return new SqlJoin(
        handle,
        side.name(),
        side.alias(),
        how(),
        keys.keys(),
        List.copyOf(used),
        conditions,
        rest,
        side.table().options());
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
