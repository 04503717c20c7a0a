package io.lockgate.spark.enforcement;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.bridge.RequestSessions;
import io.lockgate.spark.catalog.LockgateTable;
import io.lockgate.spark.enforcement.parts.PlanWalk;
import io.lockgate.spark.scan.LoadedTable;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.analysis.MultiInstanceRelation;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.CurrentTimeZone;
import org.apache.spark.sql.catalyst.expressions.CurrentUser;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LeafNode;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.streaming.StreamingRelationV2;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractPartialFunction;

/**
 * Puts row filter, masks and barrier above a relation, as decided.
 *
 * <p>The relation's own columns get new ids, and what leaves the barrier keeps the old ones, so
 * that nothing above has to change.
 */
final class Guard {
  private final SparkSession session;
  private final PolicySession policies;
  private final String user;

  Guard(SparkSession session, String user) {
    this.session = session;
    this.policies = PolicySession.of(session);
    this.user = user;
  }

  /** The barrier of a relation, whose columns it gives out. */
  Barrier over(
      LogicalPlan relation, List<Attribute> columns, ObjectNode described, JsonNode decided) {
    boolean refused = decided.get("refused").asBoolean();
    LogicalPlan raw = granted(((MultiInstanceRelation) relation).newInstance(), decided);
    StreamRights streamed = StreamRights.of(relation, described, decided);
    Set<String> denied = new HashSet<>();
    decided.get("denied").forEach(name -> denied.add(name.asText()));
    List<NamedExpression> values = new ArrayList<>();
    for (int i = 0; i < columns.size(); i++) {
      Attribute old = columns.get(i);
      Attribute now = Relations.output(raw).get(i);
      values.add(named(value(now, refused, denied, decided.get("masks")), old));
    }
    LogicalPlan seen = raw;
    if (!decided.get("filter").isNull()) {
      seen = new Filter(parsed(decided.get("filter").asText()), seen);
    }
    LogicalPlan made = policies.analyzed(new Project(seq(values), seen));
    if (!refused) {
      made = new PlanWalk(this::ofPolicy).over(made);
    }
    return new Barrier(
        withUser(made),
        new Barrier.ProtectedRelation(
            described,
            user,
            decided.get("rights").asText(),
            refused,
            decided.get("removable").asBoolean(),
            !decided.get("filter").isNull() || !decided.get("masks").isEmpty(),
            streamed));
  }

  private Expression value(Attribute column, boolean refused, Set<String> denied, JsonNode masks) {
    if (refused || denied.contains(column.name()) || Relations.isMetadata(column)) {
      return new DeniedColumn(column, column.name());
    } else if (masks.has(column.name())) {
      String type = column.dataType().sql();
      return parsed("CAST((" + masks.get(column.name()).asText() + ") AS " + type + ")");
    }
    return column;
  }

  private static NamedExpression named(Expression value, Attribute old) {
    return new Alias(
        value,
        old.name(),
        old.exprId(),
        old.qualifier(),
        Option.apply(old.metadata()),
        seq(List.<String>of()));
  }

  private Expression parsed(String text) {
    try {
      return policies.parsed(text);
    } catch (Exception e) {
      // The text is the policy's, not for its user to read.
      throw Bridge.failure(
          "A row filter or a mask of a policy is not Spark SQL, so nothing is read of its table:"
              + " tell those who make the policies");
    }
  }

  /** A table of ours that a row filter itself looks at is read with the rights of the policy. */
  private LogicalPlan ofPolicy(LogicalPlan plan) {
    ObjectNode table = isOurs(plan) ? Relations.describe(plan) : null;
    if (table == null || Relations.options(plan).containsKey(LoadedTable.GRANT)) {
      return table == null ? null : plan;
    }
    return withGrant(plan, Bridge.ask("governance.of_policy", table.without(List.of("kind"))));
  }

  static boolean isOurs(LogicalPlan plan) {
    return plan instanceof DataSourceV2Relation relation
            && relation.table() instanceof LockgateTable
        || plan instanceof StreamingRelationV2 stream && stream.table() instanceof LockgateTable;
  }

  /** A relation of ours reads stored rows by its grant, and without one is asked about again. */
  private LogicalPlan granted(LogicalPlan raw, JsonNode decided) {
    return isOurs(raw) ? withGrant(raw, decided.get("grant")) : raw;
  }

  private LogicalPlan withGrant(LogicalPlan plan, JsonNode token) {
    if (!token.isNull()) {
      RequestSessions.granted(token.asText(), session);
    }
    return Relations.withOption(plan, LoadedTable.GRANT, token);
  }

  /**
   * The user of a policy is the one who asks, not the one whose process this is; zone, database and
   * catalog are the server's, whatever the session has set.
   */
  private LogicalPlan withUser(LogicalPlan plan) {
    LogicalPlan found =
        plan.transformAllExpressionsWithSubqueries(
            new AbstractPartialFunction<Expression, Expression>() {
              @Override
              public boolean isDefinedAt(Expression each) {
                return each instanceof CurrentUser || each instanceof CurrentTimeZone;
              }

              @Override
              @SuppressWarnings("unchecked") // an expression takes the place of one
              public <A extends Expression, B> B applyOrElse(
                  A each, scala.Function1<A, B> otherwise) {
                return isDefinedAt(each)
                    ? (B) text(each instanceof CurrentUser ? user : policies.zone())
                    : otherwise.apply(each);
              }
            });
    return policies.placed(found);
  }

  private static Literal text(String value) {
    return new Literal(UTF8String.fromString(value), DataTypes.StringType);
  }

  /** The relation below a barrier. */
  static LogicalPlan relationOf(Barrier barrier) {
    LogicalPlan found = barrier;
    while (!(found instanceof LeafNode)) {
      found = found.children().apply(0);
    }
    return found;
  }

  private static <T> Seq<T> seq(List<T> list) {
    return CollectionConverters.asScala(list).toSeq();
  }
}
