package io.lockgate.spark.rules.streams;

import io.lockgate.spark.bridge.PythonHandle;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogManager;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.PartialFunction;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractPartialFunction;

/**
 * {@code spark.readStream.option("read.changelog", "true").table("lake.db.t")} reads {@code
 * t$audit_log}, which has the kinds of rows: Spark knows the columns of a table before its options.
 */
public final class KindsOfRows extends Rule<LogicalPlan> {
  private static final String OPTION = "read.changelog";
  private static final String VIEW = "$audit_log";

  private final SparkSession session;
  private final PartialFunction<LogicalPlan, LogicalPlan> renaming =
      new AbstractPartialFunction<>() {
        @Override
        public boolean isDefinedAt(LogicalPlan plan) {
          return plan instanceof UnresolvedRelation relation
              && relation.isStreaming()
              && Boolean.parseBoolean(relation.options().get(OPTION))
              && isOurs(relation);
        }

        @Override
        public LogicalPlan apply(LogicalPlan plan) {
          return renamed((UnresolvedRelation) plan);
        }
      };

  /** Makes the rule of one session. */
  public KindsOfRows(SparkSession session) {
    this.session = session;
  }

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    return plan.resolveOperatorsUp(renaming);
  }

  private boolean isOurs(UnresolvedRelation relation) {
    CatalogManager catalogs = session.sessionState().catalogManager();
    String first = relation.multipartIdentifier().head();
    boolean named = relation.multipartIdentifier().length() > 1;
    CatalogPlugin catalog =
        named && catalogs.isCatalogRegistered(first)
            ? catalogs.catalog(first)
            : catalogs.currentCatalog();
    return catalog instanceof PythonHandle;
  }

  private static LogicalPlan renamed(UnresolvedRelation relation) {
    List<String> name =
        new ArrayList<>(CollectionConverters.asJava(relation.multipartIdentifier()));
    int last = name.size() - 1;
    if (!name.get(last).endsWith(VIEW)) {
      name.set(last, name.get(last) + VIEW);
    }
    Map<String, String> options = new HashMap<>(relation.options().asCaseSensitiveMap());
    options.keySet().removeIf(OPTION::equalsIgnoreCase);
    return new UnresolvedRelation(
        CollectionConverters.asScala(name).toSeq(), new CaseInsensitiveStringMap(options), true);
  }
}
