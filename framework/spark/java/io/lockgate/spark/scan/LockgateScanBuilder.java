package io.lockgate.spark.scan;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.bridge.Predicates;
import java.util.Arrays;
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
  private final ObjectNode request;
  private final String scanId = UUID.randomUUID().toString();
  private StructType columns;
  private Predicate[] offered = new Predicate[0];
  private Predicate[] accepted = new Predicate[0];
  private Aggregation aggregation;
  private JsonNode answer;
  private Integer limit;
  private ArrayNode order = Bridge.JSON.createArrayNode();

  public LockgateScanBuilder(LoadedTable table, ObjectNode request, boolean strict) {
    this.table = table;
    this.request = request.put("snapshot_id", table.snapshotId()).put("strict", strict);
    this.columns = table.structType();
  }

  @Override
  public Predicate[] pushPredicates(Predicate[] predicates) {
    ObjectNode ask = request.deepCopy().put("scan_id", scanId);
    ask.set("filters", Predicates.toJson(predicates));
    ask.set(
        "texts",
        Bridge.JSON.valueToTree(Arrays.stream(predicates).map(Predicate::toString).toArray()));
    JsonNode reply = Bridge.ask("scan.filters", ask);
    offered = predicates;
    accepted = Predicates.pick(predicates, reply.get("accepted"));
    return Predicates.pick(predicates, reply.get("remaining"));
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
    if (answer == null || !wanted.equals(aggregation)) {
      ObjectNode ask = request.deepCopy().put("scan_id", scanId);
      ask.set("filters", Predicates.toJson(accepted));
      ask.set("aggregates", Predicates.toJson(wanted.aggregateExpressions()));
      ask.set("group_by", Predicates.toJson(wanted.groupByExpressions()));
      answer = Bridge.ask("scan.aggregates", ask).get("found");
      aggregation = wanted;
    }
    return answered();
  }

  @Override
  public boolean pushAggregation(Aggregation wanted) {
    return supportCompletePushDown(wanted);
  }

  private boolean answered() {
    return answer != null && !answer.isNull();
  }

  @Override
  public boolean pushLimit(int rows) {
    limit = rows;
    return true;
  }

  @Override
  public boolean pushTopN(SortOrder[] orders, int rows) {
    if (answered()) {
      return false;
    }
    for (SortOrder sort : orders) {
      ObjectNode key = order.addObject().put("text", sort.toString());
      key.set("expression", Predicates.toJson(sort.expression()));
      key.put("descending", sort.direction() == SortDirection.DESCENDING);
      key.put("nulls_first", sort.nullOrdering() == NullOrdering.NULLS_FIRST);
    }
    limit = rows;
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
