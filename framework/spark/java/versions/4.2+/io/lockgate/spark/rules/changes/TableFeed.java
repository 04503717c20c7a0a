package io.lockgate.spark.rules.changes;

import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.bridge.Values;
import io.lockgate.spark.files.FileColumns;
import io.lockgate.spark.messages.ChangesRequest;
import io.lockgate.spark.messages.Operations;
import io.lockgate.spark.messages.RangeAnswer;
import io.lockgate.spark.messages.RangeRequest;
import io.lockgate.spark.messages.ScanRequest;
import io.lockgate.spark.scan.LoadedTable;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.connector.catalog.Changelog;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** The changes of a table in a range of snapshots, which Python has fixed. */
final class TableFeed implements Changelog {
  private final LoadedTable table;
  private final ChangesRequest request;
  private final boolean states;
  private final boolean versioned;

  /**
   * Returns Spark's type, so that a Spark without it can load the catalog, which says what is
   * wrong.
   */
  static Changelog of(LoadedTable table, RangeRequest question) {
    return new TableFeed(table, question);
  }

  private TableFeed(LoadedTable table, RangeRequest question) {
    this.table = table;
    RangeAnswer found = Bridge.ask(Operations.CHANGES_RANGE, question);
    this.states = found.hasStates();
    this.versioned = states && !table.primaryKey().isEmpty();
    ScanRequest scan =
        table.scanRequest(new CaseInsensitiveStringMap(Map.of())).withSnapshotId(found.upto());
    this.request = new ChangesRequest(scan, question.raw(), found.after(), found.upto(), List.of());
  }

  @Override
  public String name() {
    return table.name();
  }

  @Override
  public Column[] columns() {
    return Values.columns(ChangeFeed.columns(table, versioned));
  }

  @Override
  public boolean containsCarryoverRows() {
    return versioned;
  }

  @Override
  public boolean containsIntermediateChanges() {
    return !table.primaryKey().isEmpty() && request.upto() - request.after() > 1;
  }

  @Override
  public boolean representsUpdateAsDeleteAndInsert() {
    return versioned;
  }

  @Override
  public NamedReference[] rowId() {
    return LoadedTable.references(table.primaryKey());
  }

  @Override
  public NamedReference rowVersion() {
    String column = versioned ? FileColumns.SEQUENCE_NUMBER : ChangeFeed.VERSION;
    return LoadedTable.references(List.of(column))[0];
  }

  @Override
  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    return new ChangeFeed.Builder(table, request, ChangeFeed.columns(table, versioned), states);
  }
}
