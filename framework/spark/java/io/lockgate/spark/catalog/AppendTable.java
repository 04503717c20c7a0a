package io.lockgate.spark.catalog;

import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.files.FileColumns;
import io.lockgate.spark.messages.TableRequest;
import io.lockgate.spark.messages.TableSpec;
import org.apache.spark.sql.connector.write.RowLevelOperationBuilder;
import org.apache.spark.sql.connector.write.RowLevelOperationInfo;

/**
 * A table without a primary key: each row lies in one file, which is written again if one of its
 * rows changes, or has a deletion vector.
 */
public final class AppendTable extends LockgateTable {
  public AppendTable(TableRequest request, TableSpec spec) {
    super(request, spec);
  }

  @Override
  public RowLevelOperationBuilder newRowLevelOperationBuilder(RowLevelOperationInfo info) {
    if (structType().getFieldIndex(FileColumns.PATH).isDefined()) {
      throw Bridge.failure(
          info.command()
              + " needs the name "
              + FileColumns.PATH
              + ", which a column of "
              + name()
              + " has: rename the column");
    }
    if (!marksRows()) {
      return () -> new FileRewrite(this, info.command());
    }
    if (structType().getFieldIndex(FileColumns.ROW_INDEX).isDefined()) {
      throw Bridge.failure(
          info.command()
              + " needs the name "
              + FileColumns.ROW_INDEX
              + ", which a column of "
              + name()
              + " has: rename the column");
    }
    return () -> new RowMarking(this, info.command());
  }
}
