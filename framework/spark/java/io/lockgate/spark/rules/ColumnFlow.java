package io.lockgate.spark.rules;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.fasterxml.jackson.databind.node.POJONode;
import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.lineage.Datasets;
import io.lockgate.spark.lineage.PlanLineage;
import io.lockgate.spark.lineage.Sources;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.WeakHashMap;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetArrayStructFields;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.HashExpression;
import org.apache.spark.sql.catalyst.expressions.Inline;
import org.apache.spark.sql.catalyst.expressions.Md5;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.expressions.Sha1;
import org.apache.spark.sql.catalyst.expressions.Sha2;
import org.apache.spark.sql.catalyst.expressions.WindowSpecDefinition;
import org.apache.spark.sql.catalyst.expressions.aggregate.Count;
import org.apache.spark.sql.catalyst.plans.logical.Expand;
import org.apache.spark.sql.catalyst.plans.logical.Generate;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeRows;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.execution.columnar.InMemoryRelation;
import org.apache.spark.sql.execution.streaming.Sink;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Metadata;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The columns of a plan that carry values of encrypted columns, with the origins of these values.
 *
 * <p>A column carries what the columns carry that it is computed from, but for counts, hashes and
 * what is true or false.
 */
final class ColumnFlow {
  static final String MARK = PlanLineage.ENCRYPTED;

  /** Metadata of a lookup's answer: what is said of each of its members, in their order. */
  private static final String LOOKED_UP = "lockgate.looked-up";

  /**
   * Sources of the columns of the batches that streams give to functions, where plans begin with
   * rows that are there.
   */
  private static final Map<Sink, Map<ExprId, Set<JsonNode>>> BATCHES =
      Collections.synchronizedMap(new WeakHashMap<>());

  private final Map<ExprId, Set<JsonNode>> marks = new HashMap<>();

  private ColumnFlow() {}

  /** A column of a dataset that is read, and not encrypted there. */
  record Origin(ObjectNode dataset, String column) {
    /** As other columns of the same leaf of a plan share the dataset, to compare that is enough. */
    @Override
    public boolean equals(Object other) {
      return other instanceof Origin o && o.dataset == dataset && o.column.equals(column);
    }

    @Override
    public int hashCode() {
      return System.identityHashCode(dataset) * 31 + column.hashCode();
    }
  }

  /**
   * The sources of the output columns of a query that have any, by the columns' names: marks of
   * encrypted columns, and {@link Origin}s.
   *
   * <p>{@code analysed} is the whole statement before it was optimized, null if that is not known.
   */
  static Map<String, Set<JsonNode>> of(LogicalPlan plan, LogicalPlan analysed) {
    ColumnFlow flow = new ColumnFlow();
    flow.visit(plan);
    flow.addDeclared(analysed, output(plan));
    Map<String, Set<JsonNode>> found = new LinkedHashMap<>();
    for (Attribute column : output(plan)) {
      Set<JsonNode> own = flow.of(column);
      if (!own.isEmpty()) {
        found.computeIfAbsent(column.name(), name -> new LinkedHashSet<>()).addAll(own);
      }
    }
    return found;
  }

  /** Those of some sources that are marks. */
  static Map<String, Set<JsonNode>> encrypted(Map<String, Set<JsonNode>> found) {
    Map<String, Set<JsonNode>> out = new LinkedHashMap<>();
    found.forEach(
        (name, all) ->
            all.stream()
                .filter(each -> !each.isPojo())
                .forEach(
                    mark -> out.computeIfAbsent(name, key -> new LinkedHashSet<>()).add(mark)));
    return out;
  }

  /**
   * Keeps what the columns of a stream's batch carry, for the queries that its sink makes of it:
   * they know the columns as the batch had them before it was optimized.
   */
  static void note(Sink sink, LogicalPlan batch, LogicalPlan analyzed) {
    ColumnFlow flow = new ColumnFlow();
    flow.visit(batch);
    flow.pass(output(batch), output(analyzed));
    flow.addDeclared(analyzed, output(analyzed));
    Map<ExprId, Set<JsonNode>> found = new HashMap<>();
    output(analyzed).forEach(column -> found.put(column.exprId(), flow.of(column)));
    BATCHES.put(sink, found);
  }

  /** Adds what an analysed statement says of a query with these columns. */
  private void addDeclared(LogicalPlan analysed, List<Attribute> columns) {
    List<String> names = columns.stream().map(Attribute::name).toList();
    for (Sources.Declarations each :
        analysed == null ? List.<Sources.Declarations>of() : Sources.declared(analysed)) {
      for (int i = 0; each.names().equals(names) && i < names.size(); i++) {
        for (Sources.Declared from : each.sources().get(i)) {
          Origin origin = new Origin(from.dataset(), from.column());
          add(columns.get(i).exprId(), Set.of(new POJONode(origin)));
        }
      }
    }
  }

  private static List<Attribute> output(LogicalPlan plan) {
    return CollectionConverters.asJava(plan.output());
  }

  private void visit(LogicalPlan plan) {
    CollectionConverters.asJava(plan.children()).forEach(this::visit);
    if (plan instanceof InMemoryRelation cached) {
      LogicalPlan origin = cached.cacheBuilder().logicalPlan();
      visit(origin);
      pass(output(origin), output(plan));
      return;
    }
    if (plan instanceof Union) {
      CollectionConverters.asJava(plan.children())
          .forEach(child -> pass(output(child), output(plan)));
      return;
    }
    CollectionConverters.asJava(plan.expressions()).forEach(this::define);
    if (plan instanceof MergeRows merge) {
      instructed(merge.matchedInstructions(), plan);
      instructed(merge.notMatchedInstructions(), plan);
      instructed(merge.notMatchedBySourceInstructions(), plan);
    } else if (plan instanceof Expand expand) {
      rows(expand.projections(), plan);
    } else {
      made(plan);
    }
  }

  private void instructed(Seq<MergeRows.Instruction> instructions, LogicalPlan plan) {
    CollectionConverters.asJava(instructions).forEach(each -> rows(each.outputs(), plan));
  }

  /** Each row that a plan makes of another has an expression for each of its columns. */
  private void rows(Seq<Seq<Expression>> rows, LogicalPlan plan) {
    List<Attribute> columns = output(plan);
    for (Seq<Expression> row : CollectionConverters.asJava(rows)) {
      List<Expression> values = CollectionConverters.asJava(row);
      for (int i = 0; i < Math.min(columns.size(), values.size()); i++) {
        add(columns.get(i).exprId(), of(values.get(i)));
      }
    }
  }

  /** Columns of one plan are those of another, one by one. */
  private void pass(List<Attribute> from, List<Attribute> to) {
    for (int i = 0; i < Math.min(from.size(), to.size()); i++) {
      add(to.get(i).exprId(), of(from.get(i)));
    }
  }

  /**
   * Columns that no name was given to by an expression: of generators, of functions in Python, of
   * whole rows.
   */
  private void made(LogicalPlan plan) {
    if (plan instanceof LogicalRDD rows) {
      noted(rows);
    }
    if (plan.children().isEmpty()) {
      read(plan); // what is said of the columns of a leaf is in their metadata
      return;
    }
    if (plan instanceof Generate generate
        && generate.generator() instanceof Inline inline
        && isAnswer(inline.child())) {
      List<Attribute> columns = CollectionConverters.asJava(generate.generatorOutput());
      for (int i = 0; i < columns.size(); i++) {
        add(columns.get(i).exprId(), member(inline.child(), i));
      }
      return;
    }
    Set<JsonNode> all = new LinkedHashSet<>();
    Set<ExprId> inputs = new LinkedHashSet<>();
    for (LogicalPlan child : CollectionConverters.asJava(plan.children())) {
      output(child).forEach(column -> inputs.add(column.exprId()));
    }
    CollectionConverters.asJava(plan.expressions()).forEach(each -> all.addAll(of(each)));
    for (Attribute column : output(plan)) {
      if (!inputs.contains(column.exprId()) && !marks.containsKey(column.exprId())) {
        add(column.exprId(), all);
      }
    }
  }

  private void read(LogicalPlan leaf) {
    for (ObjectNode dataset : Datasets.all(leaf)) {
      for (Attribute column : output(leaf)) {
        if (!column.metadata().contains(MARK)) {
          add(
              column.exprId(),
              Set.of(new POJONode(new Origin(dataset, Sources.quoted(column.name())))));
        }
      }
    }
  }

  private void noted(LogicalRDD rows) {
    synchronized (BATCHES) {
      for (Map<ExprId, Set<JsonNode>> batch : BATCHES.values()) {
        output(rows)
            .forEach(column -> add(column.exprId(), batch.getOrDefault(column.exprId(), Set.of())));
      }
    }
  }

  private void define(Expression expression) {
    CollectionConverters.asJava(expression.children()).forEach(this::define);
    if (expression instanceof PlanExpression<?> inner && inner.plan() instanceof LogicalPlan plan) {
      visit(plan);
    }
    if (expression instanceof Alias alias && !isAnswer(alias)) {
      marks.computeIfAbsent(alias.exprId(), id -> new LinkedHashSet<>()).addAll(of(alias.child()));
    }
  }

  private void add(ExprId column, Set<JsonNode> found) {
    if (!found.isEmpty()) {
      marks.computeIfAbsent(column, id -> new LinkedHashSet<>()).addAll(found);
    }
  }

  private Set<JsonNode> of(Expression expression) {
    Set<JsonNode> found = new LinkedHashSet<>();
    if (isAnswer(expression)) {
      answers(expression).forEach(each -> addMarks(each, found));
    } else if (expression instanceof GetStructField get && isAnswer(get.child())) {
      return member(get.child(), get.ordinal());
    } else if (expression instanceof GetArrayStructFields get && isAnswer(get.child())) {
      return member(get.child(), get.ordinal());
    } else if (expression instanceof Attribute column) {
      found.addAll(marks.getOrDefault(column.exprId(), Set.of()));
      mark(column.metadata(), found);
    } else if (!tellsNothing(expression)) {
      if (expression instanceof Alias alias) {
        mark(alias.metadata(), found);
      }
      if (expression instanceof PlanExpression<?> inner
          && inner.plan() instanceof LogicalPlan plan) {
        output(plan).forEach(column -> found.addAll(of(column)));
      }
      CollectionConverters.asJava(expression.children()).forEach(child -> found.addAll(of(child)));
    }
    return found;
  }

  private static boolean tellsNothing(Expression expression) {
    return expression instanceof Count
        || expression instanceof HashExpression<?>
        || expression instanceof Md5
        || expression instanceof Sha1
        || expression instanceof Sha2
        || expression
            instanceof WindowSpecDefinition // says which rows a function sees, not what it answers
        || expression.resolved() && isBoolean(expression);
  }

  private static boolean isBoolean(Expression expression) {
    try {
      return expression.dataType().equals(DataTypes.BooleanType);
    } catch (Exception e) {
      return false; // a part of an expression that is no value has no type, and says so by an error
    }
  }

  /**
   * Tells whether this is what a lookup answered: values of the table that was looked in, not of
   * the keys.
   */
  private static boolean isAnswer(Expression expression) {
    return expression instanceof NamedExpression named && named.metadata().contains(LOOKED_UP);
  }

  private static JsonNode answers(Expression answer) {
    return parsed(((NamedExpression) answer).metadata().getString(LOOKED_UP), LOOKED_UP);
  }

  /** The marks of one member of an answer; the snapshot, which is the last one, has none. */
  private static Set<JsonNode> member(Expression answer, int number) {
    Set<JsonNode> found = new LinkedHashSet<>();
    JsonNode member = answers(answer).get(number);
    if (member != null) {
      addMarks(member, found);
    }
    return found;
  }

  private static void addMarks(JsonNode of, Set<JsonNode> found) {
    if (of.has(MARK)) {
      found.add(parsed(of.get(MARK).asText(), MARK));
    } else if (of.has(PlanLineage.DECLARED)) {
      declared(Sources.parsed(of.get(PlanLineage.DECLARED).asText()), found);
    }
  }

  private static void mark(Metadata metadata, Set<JsonNode> found) {
    if (metadata.contains(MARK)) {
      found.add(parsed(metadata.getString(MARK), MARK));
    } else if (metadata.contains(PlanLineage.DECLARED)) {
      declared(Sources.declarations(metadata), found);
    }
  }

  private static JsonNode parsed(String text, String name) {
    try {
      return Bridge.JSON.readTree(text);
    } catch (JsonProcessingException e) {
      throw Bridge.failure(
          "The metadata "
              + name
              + " of a column is not what Lockgate gave it: "
              + e.getOriginalMessage());
    }
  }

  /** Adds what programs, or lookup joins, say of a column: a list of tables and columns. */
  private static void declared(List<Sources.Declared> read, Set<JsonNode> found) {
    if (read != null) { // else its lineage is opaque, and recorded so
      read.forEach(each -> found.add(new POJONode(new Origin(each.dataset(), each.column()))));
    }
  }
}
