package io.lockgate.spark.lineage;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.CaseWhen;
import org.apache.spark.sql.catalyst.expressions.CommonExpressionDef;
import org.apache.spark.sql.catalyst.expressions.CommonExpressionId;
import org.apache.spark.sql.catalyst.expressions.CommonExpressionRef;
import org.apache.spark.sql.catalyst.expressions.Exists;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.If;
import org.apache.spark.sql.catalyst.expressions.InSubquery;
import org.apache.spark.sql.catalyst.expressions.OuterReference;
import org.apache.spark.sql.catalyst.expressions.RankLike;
import org.apache.spark.sql.catalyst.expressions.RuntimeReplaceable;
import org.apache.spark.sql.catalyst.expressions.ScalarSubquery;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.expressions.WindowExpression;
import org.apache.spark.sql.catalyst.expressions.With;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.Count;
import org.apache.spark.sql.catalyst.expressions.aggregate.PivotFirst;
import scala.Tuple2;
import scala.jdk.javaapi.CollectionConverters;

/** The sources of an expression, given the sources of the columns that it may name. */
final class ExpressionLineage {
  private final PlanLineage plans;

  /** Parts that an expression names more than once, as in NULLIF and BETWEEN. */
  private final Map<CommonExpressionId, Dependencies> common = new HashMap<>();

  ExpressionLineage(PlanLineage plans) {
    this.plans = plans;
  }

  Dependencies of(Expression expression, Scope in, Map<Long, Dependencies> outer) {
    plans.count();
    if (expression instanceof Attribute attribute) {
      return attribute(attribute.exprId().id(), in, outer);
    }
    if (expression instanceof OuterReference reference) {
      return attribute(reference.exprId().id(), new Scope(), outer);
    }
    if (expression instanceof Alias alias) {
      return alias(alias, in, outer);
    }
    if (expression instanceof GetStructField member) {
      return member(member, in, outer);
    }
    if (expression instanceof CaseWhen when) {
      return cases(when, in, outer);
    }
    if (expression instanceof If branch) {
      return sum(List.of(branch.predicate()), Dependencies.CONDITIONAL, in, outer)
          .add(
              sum(
                  List.of(branch.trueValue(), branch.falseValue()),
                  Dependencies.TRANSFORMATION,
                  in,
                  outer));
    }
    if (expression instanceof AggregateExpression aggregate) {
      return aggregate(aggregate, in, outer);
    }
    if (expression instanceof WindowExpression window) {
      return window(window, in, outer);
    }
    if (expression instanceof SubqueryExpression subquery) {
      return subquery(subquery, in, outer);
    }
    if (expression instanceof InSubquery member) {
      return sum(
              CollectionConverters.asJava(member.values()), Dependencies.TRANSFORMATION, in, outer)
          .add(of(member.query(), in, outer));
    }
    if (expression instanceof With with) {
      for (CommonExpressionDef each : CollectionConverters.asJava(with.defs())) {
        common.put(each.id(), of(each.child(), in, outer));
      }
      return of(with.child(), in, outer);
    }
    if (expression instanceof CommonExpressionRef reference) {
      return common.getOrDefault(reference.id(), new Dependencies());
    }
    return sum(children(expression), Functions.step(expression), in, outer);
  }

  /** All that several expressions depend on, after a step of a kind. */
  Dependencies sum(
      List<? extends Expression> each, int step, Scope in, Map<Long, Dependencies> outer) {
    Dependencies out = new Dependencies();
    each.forEach(one -> out.add(of(one, in, outer).through(step)));
    return out;
  }

  /** The parts of an expression; some stand for others, as NULLIF does, which say what decides. */
  private static List<Expression> children(Expression expression) {
    if (expression instanceof RuntimeReplaceable shorthand) {
      return List.of(shorthand.replacement());
    }
    return CollectionConverters.asJava(expression.children());
  }

  private static Dependencies attribute(long id, Scope in, Map<Long, Dependencies> outer) {
    Dependencies own = in.columns.get(id);
    return own != null ? own : outer.getOrDefault(id, new Dependencies());
  }

  private Dependencies alias(Alias alias, Scope in, Map<Long, Dependencies> outer) {
    Dependencies declared =
        alias.explicitMetadata().isDefined() ? plans.declared(alias.metadata()) : null;
    Dependencies seen = of(alias.child(), in, outer);
    return declared == null ? seen : declared.add(seen.through(Dependencies.JOIN));
  }

  private Dependencies member(GetStructField member, Scope in, Map<Long, Dependencies> outer) {
    Dependencies of = of(member.child(), in, outer);
    Integer copied = of.copied();
    return copied == null
        ? of
        : Dependencies.on(plans.sources().member(copied, member.extractFieldName()));
  }

  private Dependencies cases(CaseWhen when, Scope in, Map<Long, Dependencies> outer) {
    Dependencies out = new Dependencies();
    for (Tuple2<Expression, Expression> branch : CollectionConverters.asJava(when.branches())) {
      out.add(of(branch._1(), in, outer).through(Dependencies.CONDITIONAL));
      out.add(of(branch._2(), in, outer).through(Dependencies.TRANSFORMATION));
    }
    if (when.elseValue().isDefined()) {
      out.add(of(when.elseValue().get(), in, outer).through(Dependencies.TRANSFORMATION));
    }
    return out;
  }

  private Dependencies aggregate(
      AggregateExpression aggregate, Scope in, Map<Long, Dependencies> outer) {
    Dependencies out = new Dependencies();
    if (aggregate.aggregateFunction() instanceof PivotFirst pivot) {
      out.add(of(pivot.valueColumn(), in, outer));
      out.add(of(pivot.pivotColumn(), in, outer).through(Dependencies.CONDITIONAL));
    } else {
      boolean counts = aggregate.aggregateFunction() instanceof Count;
      int step = counts ? Dependencies.masked(Dependencies.AGGREGATION) : Dependencies.AGGREGATION;
      out.add(sum(children(aggregate.aggregateFunction()), step, in, outer));
    }
    if (aggregate.filter().isDefined()) {
      out.add(of(aggregate.filter().get(), in, outer).through(Dependencies.CONDITIONAL));
    }
    return out;
  }

  private Dependencies window(WindowExpression window, Scope in, Map<Long, Dependencies> outer) {
    return new Dependencies()
        .add(function(window.windowFunction(), in, outer).through(Dependencies.TRANSFORMATION))
        .add(by(CollectionConverters.asJava(window.windowSpec().partitionSpec()), in, outer))
        .add(by(CollectionConverters.asJava(window.windowSpec().orderSpec()), in, outer));
  }

  /** The order by which rows are ranked is no argument, though Spark makes it one. */
  private Dependencies function(Expression function, Scope in, Map<Long, Dependencies> outer) {
    return function instanceof RankLike ? new Dependencies() : of(function, in, outer);
  }

  private Dependencies by(
      List<? extends Expression> keys, Scope in, Map<Long, Dependencies> outer) {
    return sum(keys, Dependencies.WINDOW, in, outer);
  }

  /** Adds a subquery's filters and joins: they decide what the value is, not only which rows. */
  private Dependencies subquery(
      SubqueryExpression subquery, Scope in, Map<Long, Dependencies> outer) {
    Scope inner = plans.walk(subquery.plan(), in.within(outer));
    Dependencies out = new Dependencies();
    if (subquery instanceof ScalarSubquery) {
      out.add(inner.at(0));
    } else if (!(subquery instanceof Exists)) { // EXISTS looks at no column
      inner.order.forEach(id -> out.add(inner.of(id).through(Dependencies.CONDITIONAL)));
    }
    return out.add(inner.rows);
  }
}
