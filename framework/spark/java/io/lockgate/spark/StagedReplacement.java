package io.lockgate.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.write.RowLevelOperationBuilder;
import org.apache.spark.sql.connector.write.RowLevelOperationInfo;

/** A table that gets its rows out of sight, then takes its name at once: from no table, or from one that it replaces. */
final class StagedReplacement extends LockgateTable implements StagedTable {
  private final String target;
  private final String replaced;
  private final boolean mayReplace;
  private volatile Long computedFrom;

  StagedReplacement(ObjectNode request, JsonNode spec, boolean mayReplace) {
    super(request.deepCopy().put("name", spec.get("staged").asText()), spec);
    this.target = request.get("name").asText();
    this.replaced = spec.path("replaces").asText(null);
    this.mayReplace = mayReplace;
  }

  /** Whoever computes these rows from the table to be replaced must see true values, as if writing to it. */
  @Override
  Set<String> ids() {
    return replaced == null ? super.ids() : Set.of(id(), replaced);
  }

  /** Snapshots are those of the table that is replaced: nothing that the write itself could be checked by. */
  @Override
  void computedFrom(LockgateTable read) {
    long snapshotId = read.snapshotId();
    computedFrom = computedFrom == null ? snapshotId : Math.min(computedFrom, snapshotId);
  }

  /** None: under its name there still is the other table, and Spark would compare with that one. */
  @Override
  public String version() {
    return null;
  }

  @Override
  public void commitStagedChanges() {
    Bridge.ask("table.commit_staged", request().put("target", target).put("may_replace", mayReplace).put("basis", computedFrom));
  }

  @Override
  public void abortStagedChanges() {
    Bridge.ask("table.abort_staged", request());
  }

  @Override
  public CustomTaskMetric[] reportDriverMetrics() {
    return new CustomTaskMetric[0];
  }

  @Override
  public RowLevelOperationBuilder newRowLevelOperationBuilder(RowLevelOperationInfo info) {
    throw new UnsupportedOperationException("a table that is being made has no rows to change");
  }
}
