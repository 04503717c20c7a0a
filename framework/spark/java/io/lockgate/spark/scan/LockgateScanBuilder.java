package io.lockgate.spark.scan;

import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.bridge.Predicates;
import io.lockgate.spark.messages.AggregatesFound;
import io.lockgate.spark.messages.AggregatesRequest;
import io.lockgate.spark.messages.FiltersAnswer;
import io.lockgate.spark.messages.FiltersRequest;
import io.lockgate.spark.messages.Operations;
import io.lockgate.spark.messages.ScanRequest;
import io.lockgate.spark.messages.SortKeyJson;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.UUID;
import org.apache.spark.sql.connector.expressions.NullOrdering;
import org.apache.spark.sql.connector.expressions.SortDirection;
import org.apache.spark.sql.connector.expressions.SortOrder;
import org.apache.spark.sql.connector.expressions.aggregate.Aggregation;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.SupportsPushDownAggregates;
import org.apache.spark.sql.connector.read.SupportsPushDownLimit;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.connector.read.SupportsPushDownTopN;
import org.apache.spark.sql.connector.read.SupportsPushDownV2Filters;
import org.apache.spark.sql.types.StructType;

/** Passes filters, columns, aggregates, limit and order to Python, which says what it accepts. */
public class LockgateScanBuilder
    implements ScanBuilder,
        SupportsPushDownV2Filters,
        SupportsPushDownRequiredColumns,
        SupportsPushDownAggregates,
        SupportsPushDownLimit,
        SupportsPushDownTopN {
  private final LoadedTable table;
  private final ScanRequest request;
  private final String scanId = UUID.randomUUID().toString();
  private StructType columns;
  private Predicate[] offered = new Predicate[0];
  private Predicate[] accepted = new Predicate[0];
  private Aggregation aggregation;
  private AggregatesFound answer;
  private Long limit;
  private final List<SortKeyJson> order = new ArrayList<>();

  public LockgateScanBuilder(LoadedTable table, ScanRequest request) {
    this.table = table;
    this.request = request;
    this.columns = table.structType();
  }

  @Override
  public Predicate[] pushPredicates(Predicate[] predicates) {
    List<String> texts = Arrays.stream(predicates).map(Predicate::toString).toList();
    FiltersAnswer reply =
        Bridge.ask(
            Operations.SCAN_FILTERS,
            new FiltersRequest(request, scanId, Predicates.toJson(predicates), texts));
    offered = predicates;
    accepted = Predicates.pick(predicates, reply.accepted());
    return Predicates.pick(predicates, reply.remaining());
  }

  @Override
  public Predicate[] pushedPredicates() {
    return accepted;
  }

  @Override
  public void pruneColumns(StructType required) {
    columns = required;
  }

  @Override
  public boolean supportCompletePushDown(Aggregation wanted) {
    if (!wanted.equals(aggregation)) {
      answer =
          Bridge.ask(
                  Operations.SCAN_AGGREGATES,
                  new AggregatesRequest(
                      request,
                      scanId,
                      Predicates.toJson(accepted),
                      Predicates.toJson(wanted.aggregateExpressions()),
                      Predicates.toJson(wanted.groupByExpressions())))
              .found();
      aggregation = wanted;
    }
    return answered();
  }

  @Override
  public boolean pushAggregation(Aggregation wanted) {
    return supportCompletePushDown(wanted);
  }

  private boolean answered() {
    return answer != null;
  }

  @Override
  public boolean pushLimit(int rows) {
    limit = (long) rows;
    return true;
  }

  @Override
  public boolean pushTopN(SortOrder[] orders, int rows) {
    if (answered()) {
      return false;
    }
    for (SortOrder sort : orders) {
      order.add(
          new SortKeyJson(
              sort.toString(),
              Predicates.toJson(sort.expression()),
              sort.direction() == SortDirection.DESCENDING,
              sort.nullOrdering() == NullOrdering.NULLS_FIRST));
    }
    limit = (long) rows;
    return true;
  }

  @Override
  public boolean isPartiallyPushed() {
    return true; // files are left out once the others hold enough rows; Spark still sorts and cuts
  }

  @Override
  public Scan build() {
    return answered() ? new AggregateScan(scanId, table, aggregation, answer) : scan(false);
  }

  /** A scan that reads, of each file that may hold wanted rows, every row. */
  public LockgateScan scan(boolean wholeFiles) {
    return new LockgateScan(
        table, request, scanId, columns, offered, accepted, limit, order, wholeFiles);
  }
}
