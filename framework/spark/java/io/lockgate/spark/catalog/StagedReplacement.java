package io.lockgate.spark.catalog;

import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.messages.CommitStagedRequest;
import io.lockgate.spark.messages.Operations;
import io.lockgate.spark.messages.StagedSpec;
import io.lockgate.spark.messages.TableRequest;
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

  public StagedReplacement(TableRequest request, StagedSpec spec) {
    super(request.withName(spec.staging()).withReplacement(spec.replacement()), spec.table());
    this.target = request.name();
  }

  /** The name that the table takes in the end, with that of its database. */
  public String named() {
    return request().namespace().get(0) + "." + target;
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
    CommitStagedRequest commit =
        new CommitStagedRequest(request(), target, baseSnapshot(), baseCommit());
    Committed.note(request(), Bridge.ask(Operations.TABLE_COMMIT_STAGED, commit));
    CachedPlans.refreshTable(request().withName(target));
  }

  @Override
  public void abortStagedChanges() {
    Bridge.ask(Operations.TABLE_ABORT_STAGED, request());
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
