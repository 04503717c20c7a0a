package io.lockgate.spark.rules;

import io.lockgate.spark.scan.LockgateScan;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.BloomFilterMightContain;
import org.apache.spark.sql.catalyst.expressions.DynamicPruning;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.PythonUDF;
import org.apache.spark.sql.catalyst.optimizer.InjectRuntimeFilter$;
import org.apache.spark.sql.catalyst.plans.LeftAnti$;
import org.apache.spark.sql.catalyst.plans.LeftSemi$;
import org.apache.spark.sql.catalyst.plans.logical.BaseEvalPython;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Strategy$;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The filters of a query that Spark has offered to no source: RLIKE, functions of users, subqueries
 * and their kin.
 */
public final class UnpushedFilters {
  private final Map<String, List<String>> found = new HashMap<>();
  private final Map<String, String> functions = new HashMap<>();

  private UnpushedFilters() {}

  /** The filters above each scan, by its id, as SQL. */
  public static Map<String, List<String>> of(LogicalPlan optimized) {
    UnpushedFilters kept = new UnpushedFilters();
    kept.visit(optimized, List.of());
    return kept.found;
  }

  private void visit(LogicalPlan plan, List<Expression> above) {
    if (plan instanceof DataSourceV2ScanRelation relation
        && relation.scan() instanceof LockgateScan scan) {
      Set<String> offered =
          Arrays.stream(scan.offered()).map(Predicate::toString).collect(Collectors.toSet());
      List<String> texts =
          above.stream()
              .filter(condition -> !isOffered(condition, offered))
              .map(this::text)
              .distinct()
              .toList();
      found.merge(scan.scanId(), texts, (first, second) -> first);
    } else if (plan instanceof Filter filter) {
      List<Expression> conditions = new ArrayList<>(above);
      conditions.addAll(
          CollectionConverters.asJava(
              InjectRuntimeFilter$.MODULE$.splitConjunctivePredicates(filter.condition())));
      visit(filter.child(), conditions);
    } else if (plan instanceof Project project) {
      visit(project.child(), above);
    } else if (plan instanceof BaseEvalPython python) {
      name(python);
      visit(python.child(), above);
    } else if (plan instanceof Join join
        && (join.joinType() == LeftSemi$.MODULE$ || join.joinType() == LeftAnti$.MODULE$)) {
      // IN and EXISTS with a subquery have become such a join.
      List<Expression> conditions = new ArrayList<>(above);
      join.condition().foreach(conditions::add);
      visit(join.left(), conditions);
      visit(join.right(), List.of());
    } else {
      CollectionConverters.asJava(plan.children()).forEach(child -> visit(child, List.of()));
    }
  }

  /**
   * Tells whether a condition is known from elsewhere: it was offered, or Spark has made it of a
   * join.
   */
  private static boolean isOffered(Expression condition, Set<String> offered) {
    if (condition instanceof DynamicPruning || condition instanceof BloomFilterMightContain) {
      return true;
    }
    if (Untranslatable.fails(condition)) {
      return false;
    }
    var predicate = DataSourceV2Strategy$.MODULE$.translateFilterV2(condition);
    return predicate.isDefined() && offered.contains(predicate.get().toString());
  }

  private void name(BaseEvalPython python) {
    List<Attribute> results = CollectionConverters.asJava(python.resultAttrs());
    List<PythonUDF> called = CollectionConverters.asJava(python.udfs());
    for (int i = 0; i < called.size(); i++) {
      functions.put(results.get(i).name(), called.get(i).sql());
    }
  }

  /** A condition as SQL, in which Python functions have names of their own again. */
  private String text(Expression condition) {
    String text = condition.sql();
    for (Map.Entry<String, String> function : functions.entrySet()) {
      text = text.replace(function.getKey(), function.getValue());
    }
    return text;
  }
}
