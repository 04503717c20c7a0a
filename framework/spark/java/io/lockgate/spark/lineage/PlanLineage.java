package io.lockgate.spark.lineage;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.AsOfJoin;
import org.apache.spark.sql.catalyst.plans.logical.CTERelationDef;
import org.apache.spark.sql.catalyst.plans.logical.CTERelationRef;
import org.apache.spark.sql.catalyst.plans.logical.Deduplicate;
import org.apache.spark.sql.catalyst.plans.logical.Distinct;
import org.apache.spark.sql.catalyst.plans.logical.Except;
import org.apache.spark.sql.catalyst.plans.logical.Expand;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Generate;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LateralJoin;
import org.apache.spark.sql.catalyst.plans.logical.LeafNode;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeRows;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.SetOperation;
import org.apache.spark.sql.catalyst.plans.logical.Sort;
import org.apache.spark.sql.catalyst.plans.logical.UnionBase;
import org.apache.spark.sql.catalyst.plans.logical.UnionLoop;
import org.apache.spark.sql.catalyst.plans.logical.UnionLoopRef;
import org.apache.spark.sql.catalyst.plans.logical.View;
import org.apache.spark.sql.catalyst.plans.logical.Window;
import org.apache.spark.sql.catalyst.plans.logical.WithCTE;
import org.apache.spark.sql.types.Metadata;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Walks an analysed plan once, from its leaves up: each column gets the source columns that it
 * comes from.
 *
 * <p>A node that is not known loses nothing: whatever goes in may be in everything that comes out.
 */
public final class PlanLineage {
  /**
   * Sources that a program declares for a column that no plan shows: a list of table and column.
   */
  public static final String DECLARED = "lockgate.lineage";

  /** Key and origin of a column that is encrypted where it is read. */
  public static final String ENCRYPTED = "lockgate.encrypted";

  private static final int MOST_STEPS = 200_000;
  private static final long MOST_NANOS = 200_000_000;

  /** Says that a plan is too large to be walked. */
  static final class CutException extends RuntimeException {
    private CutException() {
      super(null, null, false, false);
    }
  }

  private final Sources sources = new Sources();
  private final Set<String> views = new LinkedHashSet<>();
  private final Set<String> opaque = new LinkedHashSet<>();
  private final Map<Long, Scope> common = new HashMap<>();
  private final Map<Long, Scope> loops = new HashMap<>();
  private final Scope explained = new Scope();
  private final ExpressionLineage expressions = new ExpressionLineage(this);
  private final long started = System.nanoTime();
  private boolean isBounded = true;
  private int steps;

  /** A walk that somebody waits for, because it must not miss anything: no plan is too large. */
  static PlanLineage unbounded() {
    PlanLineage walk = new PlanLineage();
    walk.isBounded = false;
    return walk;
  }

  Sources sources() {
    return sources;
  }

  Set<String> views() {
    return views;
  }

  Set<String> opaque() {
    return opaque;
  }

  /** Registers a plan so that later plans over its output resolve their columns. */
  void explain(LogicalPlan plan) {
    explained.addAll(walk(plan, Map.of()));
    views.clear();
    opaque.clear();
  }

  void count() {
    if (!isBounded) {
      return;
    }
    // The first plans of a session load classes, which takes longer than any walk.
    if (++steps > MOST_STEPS || steps % 4096 == 0 && System.nanoTime() - started > MOST_NANOS) {
      throw new CutException();
    }
  }

  Scope walk(LogicalPlan plan, Map<Long, Dependencies> outer) {
    count();
    Scope out = node(plan, outer);
    out.order = Scope.ids(plan);
    for (Attribute attribute : CollectionConverters.asJava(plan.output())) {
      long id = attribute.exprId().id();
      Dependencies declared = out.of(id).isOpaque() ? declared(attribute.metadata()) : null;
      if (declared != null) {
        out.columns.put(id, declared);
      }
    }
    return out;
  }

  private Scope node(LogicalPlan plan, Map<Long, Dependencies> outer) {
    if (plan instanceof LeafNode) {
      return leaf(plan);
    }
    if (plan instanceof View view) {
      if (!view.isTempView()) {
        views.add(view.desc().identifier().unquotedString());
      }
      return walk(view.child(), outer);
    }
    if (plan instanceof WithCTE with) {
      for (CTERelationDef definition : CollectionConverters.asJava(with.cteDefs())) {
        common.put(definition.id(), walk(definition.child(), outer));
      }
      return walk(with.plan(), outer);
    }
    if (plan instanceof Join || plan instanceof LateralJoin || plan instanceof AsOfJoin) {
      return join(plan, outer);
    }
    if (plan instanceof UnionLoop loop) {
      return loop(loop, outer);
    }
    if (plan instanceof SetOperation || plan instanceof UnionBase) {
      return union(plan, outer);
    }
    if (plan.children().length() == 1) {
      return unary(plan, walk(plan.children().head(), outer), outer);
    }
    return opaque(plan, outer);
  }

  private Scope unary(LogicalPlan plan, Scope in, Map<Long, Dependencies> outer) {
    if (plan instanceof Project project) {
      return named(CollectionConverters.asJava(project.projectList()), in, outer);
    }
    if (plan instanceof Aggregate aggregate) {
      Scope out = named(CollectionConverters.asJava(aggregate.aggregateExpressions()), in, outer);
      List<Expression> keys = CollectionConverters.asJava(aggregate.groupingExpressions());
      out.rows.add(expressions.sum(keys, Dependencies.GROUP_BY, in, outer));
      return out;
    }
    if (plan instanceof Filter filter) {
      return rows(in, List.of(filter.condition()), Dependencies.FILTER, outer);
    }
    if (plan instanceof Sort sort) {
      return rows(in, CollectionConverters.asJava(sort.order()), Dependencies.SORT, outer);
    }
    if (plan instanceof Window window) {
      Scope made = named(CollectionConverters.asJava(window.windowExpressions()), in, outer);
      in.columns.putAll(made.columns);
      return in;
    }
    if (plan instanceof Generate generate) {
      Expression generator = (Expression) generate.generator();
      Dependencies from = expressions.of(generator, in, outer).through(Dependencies.TRANSFORMATION);
      for (Attribute made : CollectionConverters.asJava(generate.generatorOutput())) {
        in.columns.put(made.exprId().id(), from);
      }
      return in;
    }
    if (plan instanceof Expand expand) {
      Scope out = positioned(plan, CollectionConverters.asJava(expand.projections()), in, outer);
      Groupings.number(expand, out);
      return out;
    }
    if (plan instanceof MergeRows merge) {
      return merge(merge, in, outer);
    }
    if (plan instanceof Distinct) {
      return rows(in, CollectionConverters.asJava(plan.output()), Dependencies.GROUP_BY, outer);
    }
    if (plan instanceof Deduplicate deduplicate) {
      return rows(
          in, CollectionConverters.asJava(deduplicate.keys()), Dependencies.GROUP_BY, outer);
    }
    // Aliases, limits, samples, hints, repartitions, watermarks and the like give what they get.
    boolean passes = in.order.containsAll(Scope.ids(plan));
    return passes ? in : hidden(plan, List.of(in));
  }

  private Scope rows(
      Scope in, List<? extends Expression> by, int kind, Map<Long, Dependencies> outer) {
    in.rows.add(expressions.sum(by, kind, in, outer));
    return in;
  }

  private Scope named(
      List<? extends NamedExpression> each, Scope in, Map<Long, Dependencies> outer) {
    Scope out = new Scope();
    out.rows.add(in.rows);
    for (NamedExpression one : each) {
      out.columns.put(one.exprId().id(), expressions.of((Expression) one, in, outer));
    }
    return out;
  }

  private Scope positioned(
      LogicalPlan plan,
      List<? extends Seq<Expression>> rows,
      Scope in,
      Map<Long, Dependencies> outer) {
    Scope out = new Scope();
    out.rows.add(in.rows);
    List<Long> ids = Scope.ids(plan);
    for (Seq<Expression> row : rows) {
      for (int i = 0; i < Math.min(ids.size(), row.length()); i++) {
        out.columns
            .computeIfAbsent(ids.get(i), id -> new Dependencies())
            .add(expressions.of(row.apply(i), in, outer));
      }
    }
    return out;
  }

  private Scope merge(MergeRows merge, Scope in, Map<Long, Dependencies> outer) {
    List<MergeRows.Instruction> all = new ArrayList<>();
    all.addAll(CollectionConverters.asJava(merge.matchedInstructions()));
    all.addAll(CollectionConverters.asJava(merge.notMatchedInstructions()));
    all.addAll(CollectionConverters.asJava(merge.notMatchedBySourceInstructions()));
    Scope out = new Scope();
    out.rows.add(in.rows);
    for (MergeRows.Instruction each : all) {
      Scope made = positioned(merge, CollectionConverters.asJava(each.outputs()), in, outer);
      Dependencies condition =
          expressions.of(each.condition(), in, outer).through(Dependencies.CONDITIONAL);
      made.columns.forEach(
          (id, from) ->
              out.columns.computeIfAbsent(id, key -> new Dependencies()).add(from).add(condition));
    }
    return out;
  }

  private Scope join(LogicalPlan plan, Map<Long, Dependencies> outer) {
    Scope left = walk(plan.children().head(), outer);
    LogicalPlan second =
        plan instanceof LateralJoin lateral ? lateral.right().plan() : plan.children().apply(1);
    left.addAll(walk(second, plan instanceof LateralJoin ? left.within(outer) : outer));
    List<Expression> conditions = new ArrayList<>();
    if (plan instanceof Join join && join.condition().isDefined()) {
      conditions.add(join.condition().get());
    } else if (plan instanceof LateralJoin join && join.condition().isDefined()) {
      conditions.add(join.condition().get());
    } else if (plan instanceof AsOfJoin) {
      conditions.addAll(CollectionConverters.asJava(plan.expressions()));
    }
    // An EXISTS that became a join has columns that only its condition names.
    return rows(left, conditions, Dependencies.JOIN, outer);
  }

  private Scope union(LogicalPlan plan, Map<Long, Dependencies> outer) {
    Scope out = new Scope();
    boolean first = true;
    for (LogicalPlan child : CollectionConverters.asJava(plan.children())) {
      Scope in = walk(child, outer);
      if (plan instanceof Except && !first) {
        in.order.forEach(id -> out.rows.add(in.of(id).through(Dependencies.FILTER)));
        out.rows.add(in.rows);
      } else {
        out.align(plan, in);
      }
      first = false;
    }
    return out;
  }

  /** A recursive query gives what its rounds give, until a round adds nothing. */
  private Scope loop(UnionLoop loop, Map<Long, Dependencies> outer) {
    Scope out = new Scope();
    out.align(loop, walk(loop.anchor(), outer));
    out.order = Scope.ids(loop);
    loops.put(loop.id(), out);
    boolean changed = true;
    while (changed) {
      changed = out.align(loop, walk(loop.recursion(), outer));
    }
    return out;
  }

  private Scope leaf(LogicalPlan plan) {
    Scope out = new Scope();
    if (plan instanceof CTERelationRef reference) {
      Scope definition = common.get(reference.cteId());
      if (definition == null) {
        return hidden(plan, List.of());
      }
      out.align(plan, definition);
    } else if (plan instanceof UnionLoopRef reference) {
      out.align(plan, loops.get(reference.loopId()));
    } else {
      List<ObjectNode> datasets = Datasets.all(plan);
      datasets.forEach(dataset -> read(plan, sources.dataset(dataset), out));
      if (datasets.isEmpty() && Datasets.hidesItsOrigin(plan)) {
        readCheckpoint(plan, out);
      }
    }
    return out;
  }

  private void read(LogicalPlan plan, int dataset, Scope out) {
    for (Attribute attribute : CollectionConverters.asJava(plan.output())) {
      out.columns
          .computeIfAbsent(attribute.exprId().id(), id -> new Dependencies())
          .add(sources.column(dataset, Sources.quoted(attribute.name())), Dependencies.IDENTITY);
    }
  }

  /** Rows that are there already: of a checkpoint or a stream's batch, whose plan was walked. */
  private void readCheckpoint(LogicalPlan plan, Scope out) {
    boolean all = true;
    for (long id : Scope.ids(plan)) {
      all &= explained.columns.containsKey(id);
      out.columns.put(id, explained.of(id));
    }
    if (all) {
      out.rows.add(explained.rows);
    } else {
      opaque.add(plan.nodeName());
    }
  }

  private Scope opaque(LogicalPlan plan, Map<Long, Dependencies> outer) {
    List<Scope> in = new ArrayList<>();
    for (LogicalPlan child : CollectionConverters.asJava(plan.children())) {
      in.add(walk(child, outer));
    }
    return hidden(plan, in);
  }

  private Scope hidden(LogicalPlan plan, List<Scope> children) {
    opaque.add(plan.nodeName());
    Scope out = new Scope();
    Dependencies all = new Dependencies();
    Set<Long> kept = new HashSet<>();
    for (Scope in : children) {
      out.addAll(in);
      in.order.forEach(id -> all.add(in.of(id)));
      kept.addAll(in.order);
    }
    Dependencies seen = all.through(Dependencies.OPAQUE);
    for (long id : Scope.ids(plan)) {
      if (!kept.contains(id)) {
        out.columns.put(id, seen);
      }
    }
    return out;
  }

  /** Returns what a column's metadata says of its sources, or null. */
  Dependencies declared(Metadata metadata) {
    if (!metadata.contains(DECLARED)) {
      return null;
    }
    Dependencies out = sources.declared(metadata);
    if (out == null) {
      opaque.add(DECLARED); // it says nothing that can be read
    }
    return out;
  }
}
