package io.lockgate.spark.rules.joins;

import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.rules.parser.LookupText;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.analysis.RelationTimeTravel;
import org.apache.spark.sql.catalyst.analysis.UnresolvedFunction;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.analysis.UnresolvedSubqueryColumnAliases;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.UnresolvedHint;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.PartialFunction;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractPartialFunction;

/**
 * Puts a {@link LookupTable} in place of a time travel to {@code PROCTIME()}, and what LOOKUP hints
 * say into it, before anything of a statement is resolved.
 */
public final class MarkLookups extends Rule<LogicalPlan> {
  public static final MarkLookups RULE = new MarkLookups();

  private static final String HINT = "LOOKUP";
  private static final String TABLE = "table";

  private MarkLookups() {}

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    return plan.resolveOperatorsUp(MARKING);
  }

  private static final PartialFunction<LogicalPlan, LogicalPlan> MARKING =
      new AbstractPartialFunction<>() {
        @Override
        public boolean isDefinedAt(LogicalPlan plan) {
          return plan instanceof RelationTimeTravel || plan instanceof UnresolvedHint;
        }

        @Override
        public LogicalPlan apply(LogicalPlan plan) {
          if (plan instanceof RelationTimeTravel travel) {
            return marked(travel);
          }
          UnresolvedHint hint = (UnresolvedHint) plan;
          return hint.name().equalsIgnoreCase(HINT) ? hinted(hint) : hint;
        }
      };

  private static LogicalPlan marked(RelationTimeTravel travel) {
    UnresolvedFunction clock = clock(travel);
    if (clock == null) {
      return travel;
    }
    UnresolvedRelation relation = (UnresolvedRelation) travel.relation();
    Map<String, String> options = relation.options().asCaseSensitiveMap();
    LogicalPlan plain =
        new UnresolvedRelation(
            relation.multipartIdentifier(),
            new CaseInsensitiveStringMap(Map.of()),
            relation.isStreaming());
    plain.copyTagsFrom(relation);
    return new LookupTable(plain, time(clock), options);
  }

  /** The call of PROCTIME that says the time, or null. */
  private static UnresolvedFunction clock(RelationTimeTravel travel) {
    return travel.timestamp().isDefined()
            && travel.timestamp().get() instanceof UnresolvedFunction function
            && function.nameParts().size() == 1
            && function.nameParts().head().equalsIgnoreCase(LookupText.PROCTIME)
            && travel.relation() instanceof UnresolvedRelation
        ? function
        : null;
  }

  private static String time(UnresolvedFunction clock) {
    List<Expression> arguments = CollectionConverters.asJava(clock.arguments());
    if (arguments.isEmpty()) {
      return null;
    }
    if (arguments.size() > 1 || !(arguments.get(0) instanceof Literal name)) {
      throw Bridge.failure(
          "FOR SYSTEM_TIME AS OF PROCTIME() takes no argument, or the name of a column of the"
              + " stream: PROCTIME('o.proc_time')");
    }
    return name.value() instanceof byte[] bytes
        ? new String(bytes, StandardCharsets.UTF_8)
        : String.valueOf(name.value());
  }

  // --- hints ---

  private static LogicalPlan hinted(UnresolvedHint hint) {
    Map<String, String> options = new LinkedHashMap<>();
    CollectionConverters.asJava(hint.parameters()).forEach(each -> pair(each, options));
    String table = options.remove(TABLE);
    if (table == null) {
      throw Bridge.failure(
          "the hint LOOKUP names no table: write LOOKUP('table'='d', ...), where d is how the query"
              + " calls the table");
    }
    Hint found = new Hint(table, options);
    LogicalPlan plan = found.over(hint.child());
    if (!found.isUsed) {
      throw Bridge.failure(
          "the hint LOOKUP is about "
              + table
              + ", which is not a table of this SELECT that is joined FOR SYSTEM_TIME AS OF"
              + (found.others.isEmpty() ? "" : ": it has " + String.join(", ", found.others)));
    }
    return plan;
  }

  private static void pair(Expression parameter, Map<String, String> options) {
    if (!(parameter instanceof EqualTo equal
        && equal.left() instanceof Literal key
        && equal.right() instanceof Literal value)) {
      throw Bridge.failure(
          "the hint LOOKUP takes pairs of texts, as in LOOKUP('table'='d',"
              + " 'retry-predicate'='lookup_miss')");
    }
    String name = text(key);
    if (options.put(name, text(value)) != null) {
      throw Bridge.failure("the hint LOOKUP has '" + name + "' twice");
    }
  }

  private static String text(Literal literal) {
    return String.valueOf(literal.eval(InternalRow.empty()));
  }

  /** One hint on its way to the table that it is about. */
  private static final class Hint {
    private final String table;
    private final Map<String, String> options;
    private final List<String> others = new ArrayList<>();
    private boolean isUsed;

    Hint(String table, Map<String, String> options) {
      this.table = table;
      this.options = options;
    }

    LogicalPlan over(LogicalPlan plan) {
      if (plan instanceof LookupTable found) {
        return at(found, name(found));
      } else if (plan instanceof SubqueryAlias alias) {
        return aliased(alias);
      }
      List<LogicalPlan> children = CollectionConverters.asJava(plan.children());
      List<LogicalPlan> made = children.stream().map(this::over).toList();
      return made.equals(children)
          ? plan
          : plan.withNewChildren(CollectionConverters.asScala(made).toIndexedSeq());
    }

    /** Tables below another alias are of another SELECT, which has hints of its own. */
    private LogicalPlan aliased(SubqueryAlias alias) {
      LogicalPlan below = alias.child();
      if (below instanceof UnresolvedSubqueryColumnAliases columns) {
        below = columns.child();
      }
      if (!(below instanceof LookupTable found)) {
        return alias;
      }
      LogicalPlan made = at(found, alias.alias());
      return made == found
          ? alias
          : alias.withNewChildren(
              CollectionConverters.asScala(List.of(inside(alias.child(), made))).toIndexedSeq());
    }

    private static LogicalPlan inside(LogicalPlan child, LogicalPlan made) {
      return child instanceof LookupTable
          ? made
          : child.withNewChildren(CollectionConverters.asScala(List.of(made)).toIndexedSeq());
    }

    private LogicalPlan at(LookupTable found, String alias) {
      String name = name(found);
      if (alias.equalsIgnoreCase(table) || name.equalsIgnoreCase(table)) {
        isUsed = true;
        return found.with(options);
      }
      others.add(alias);
      return found;
    }

    private static String name(LookupTable found) {
      return found.child() instanceof UnresolvedRelation relation
          ? String.join(".", CollectionConverters.asJava(relation.multipartIdentifier()))
          : "";
    }
  }
}
