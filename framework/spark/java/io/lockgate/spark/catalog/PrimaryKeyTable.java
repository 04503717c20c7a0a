package io.lockgate.spark.catalog;

import io.lockgate.spark.messages.TableRequest;
import io.lockgate.spark.messages.TableSpec;
import org.apache.spark.sql.connector.write.RowLevelOperationBuilder;
import org.apache.spark.sql.connector.write.RowLevelOperationInfo;

/** A table with a primary key, whose rows can be deleted and updated one by one. */
public final class PrimaryKeyTable extends LockgateTable {
  public PrimaryKeyTable(TableRequest request, TableSpec spec) {
    super(request, spec);
  }

  @Override
  public RowLevelOperationBuilder newRowLevelOperationBuilder(RowLevelOperationInfo info) {
    String reason = whyRefused(info.command().name());
    if (reason != null) {
      throw new UnsupportedOperationException("table " + name() + ": " + reason);
    }
    return () -> new PrimaryKeyTableChange(this, info.command());
  }
}
