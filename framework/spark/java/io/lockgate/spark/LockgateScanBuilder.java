package io.lockgate.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Arrays;
import java.util.UUID;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.SupportsPushDownLimit;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.connector.read.SupportsPushDownV2Filters;
import org.apache.spark.sql.types.StructType;

/** Hands filters, columns and limit to Python, which says what it takes over. */
class LockgateScanBuilder
    implements ScanBuilder, SupportsPushDownV2Filters, SupportsPushDownRequiredColumns, SupportsPushDownLimit {
  private final LockgateTable table;
  private final ObjectNode request;
  private final String scanId = UUID.randomUUID().toString();
  private StructType columns;
  private Predicate[] offered = new Predicate[0];
  private Predicate[] accepted = new Predicate[0];
  private Integer limit;

  LockgateScanBuilder(LockgateTable table, ObjectNode request, boolean strict) {
    this.table = table;
    this.request = request.put("snapshot_id", table.snapshotId()).put("strict", strict);
    this.columns = table.structType();
  }

  @Override
  public Predicate[] pushPredicates(Predicate[] predicates) {
    ObjectNode ask = request.deepCopy().put("scan_id", scanId);
    ask.set("filters", Predicates.toJson(predicates));
    ask.set("texts", Bridge.JSON.valueToTree(Arrays.stream(predicates).map(Predicate::toString).toArray()));
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
  public boolean pushLimit(int rows) {
    limit = rows;
    return true;
  }

  @Override
  public boolean isPartiallyPushed() {
    return true; // files are left out once they hold enough rows; Spark still cuts the last one
  }

  @Override
  public Scan build() {
    return scan(false);
  }

  /** A scan that reads, of each file that may hold wanted rows, every row. */
  LockgateScan scan(boolean wholeFiles) {
    return new LockgateScan(table, request, scanId, columns, offered, accepted, limit, wholeFiles);
  }
}
