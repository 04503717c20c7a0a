package io.lockgate.spark.catalog;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.write.Committed;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.write.RowLevelOperationBuilder;
import org.apache.spark.sql.connector.write.RowLevelOperationInfo;

/**
 * A table that gets its rows while hidden and takes its name in one step. One that replaces another
 * is written into its folder and is that same table afterwards, so all that holds for writes that
 * read what they write holds for it too.
 */
public final class StagedReplacement extends LockgateTable implements StagedTable {
  private final String target;

  public StagedReplacement(ObjectNode request, JsonNode spec) {
    super(staged(request, spec), spec.get("table"));
    this.target = request.get("name").asText();
  }

  private static ObjectNode staged(ObjectNode request, JsonNode spec) {
    ObjectNode out = request.deepCopy().put("name", spec.get("staging").asText());
    return out.set("replacement", spec.get("replacement"));
  }

  /** The name that the table takes in the end, with that of its database. */
  public String named() {
    return request().get("namespace").get(0).asText() + "." + target;
  }

  @Override
  protected String tableName() {
    return target;
  }

  /** None: under its name there still is the other table, and Spark would compare with that one. */
  @Override
  public String version() {
    return null;
  }

  @Override
  public void commitStagedChanges() {
    ObjectNode ask = request().put("target", target);
    ask.put("base_snapshot_id", baseSnapshot()).put("base_commit_id", baseCommit());
    Committed.note(request(), Bridge.ask("table.commit_staged", ask));
    CachedPlans.refreshTable(request().put("name", target));
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
