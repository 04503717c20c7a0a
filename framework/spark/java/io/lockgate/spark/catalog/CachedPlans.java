package io.lockgate.spark.catalog;

import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.messages.TableRequest;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Predicate;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.execution.CacheManager;
import org.apache.spark.sql.execution.CachedData;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import scala.collection.Iterable;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Lets cached plans show what a commit has changed: those of DataFrames, of CACHE TABLE and of
 * views.
 *
 * <p>After a write Spark computes those of the table again, by its name. It knows neither the
 * commits of a CALL, nor that the rows of {@code t$files} come from {@code t}; and a DataFrame that
 * was cached before names an older state than what was computed again.
 */
final class CachedPlans {
  private CachedPlans() {}

  /** After a write to a table. */
  static void refreshTable(TableRequest table) {
    refresh(relation -> isOf(relation, table));
  }

  /** After a CALL, which may have committed to any table, or dropped it. */
  static void refreshChanged() {
    refresh(relation -> !newest(relation).equals(relation.table()));
  }

  /**
   * Computes plans of some relations again. Where a table, or its database, is gone or hidden, the
   * plan is forgotten: the statement has committed, and the next read reports it.
   */
  private static void refresh(Predicate<DataSourceV2Relation> chosen) {
    SparkSession session = SparkSession.active();
    CacheManager manager = session.sharedState().cacheManager();
    for (DataSourceV2Relation relation : relations(session)) {
      try {
        if (chosen.test(relation)) {
          if (relation.table() instanceof LockgateTable cached) {
            cached.readNewest(() -> newest(relation));
          }
          manager.recacheByPlan(session, relation);
        }
      } catch (Exception gone) { // of Spark's, which are checked ones in Java, too
        manager.uncacheQuery(session, relation, true);
      }
    }
  }

  private static Table newest(DataSourceV2Relation relation) {
    try {
      return ((TableCatalog) relation.catalog().get()).loadTable(relation.identifier().get());
    } catch (NoSuchTableException gone) {
      throw Bridge.failure(gone.getMessage());
    }
  }

  /** The relations of ours in cached plans. */
  private static List<DataSourceV2Relation> relations(SparkSession session) {
    CacheManager manager = session.sharedState().cacheManager();
    List<DataSourceV2Relation> found = new ArrayList<>();
    if (!manager.isEmpty()) {
      for (Object cached : CollectionConverters.asJava(cachedData(manager))) {
        collect(((CachedData) cached).plan(), found);
      }
    }
    return found;
  }

  /** By reflection: Spark lets only those ask that have a plan, or a name. */
  private static Iterable<?> cachedData(CacheManager manager) {
    try {
      Method cachedData = CacheManager.class.getDeclaredMethod("cachedData");
      cachedData.setAccessible(true);
      return (Iterable<?>) cachedData.invoke(manager);
    } catch (ReflectiveOperationException failure) {
      throw new IllegalStateException(
          "this version of Spark keeps cached plans in another way", failure);
    }
  }

  private static void collect(LogicalPlan plan, List<DataSourceV2Relation> found) {
    if (plan instanceof DataSourceV2Relation relation
        && relation.catalog().isDefined()
        && relation.identifier().isDefined()
        && (relation.table() instanceof LockgateTable table && !table.timeTravel()
            || relation.table() instanceof SystemTable)) {
      found.add(relation);
    }
    CollectionConverters.asJava(plan.children()).forEach(child -> collect(child, found));
    CollectionConverters.asJava(plan.subqueries()).forEach(query -> collect(query, found));
  }

  /** Tells whether a relation is a table, one of its system tables, or one of its warehouse. */
  private static boolean isOf(DataSourceV2Relation relation, TableRequest table) {
    TableRequest request =
        relation.table() instanceof LockgateTable cached
            ? cached.request()
            : ((SystemTable) relation.table()).request();
    if (!request.catalog().equals(table.catalog())) {
      return false;
    }
    String name = request.name();
    return request.namespace().equals(table.namespace())
        ? name.equals(table.name()) || name.startsWith(table.name() + "$")
        : relation.table() instanceof SystemTable; // such as sys.tables
  }
}
