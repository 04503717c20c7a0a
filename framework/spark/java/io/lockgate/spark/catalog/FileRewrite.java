package io.lockgate.spark.catalog;

import io.lockgate.spark.files.FileColumns;
import io.lockgate.spark.scan.LockgateScan;
import io.lockgate.spark.scan.LockgateScanBuilder;
import java.util.List;
import org.apache.spark.sql.catalyst.util.CharVarcharUtils;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.RowLevelOperation;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * DELETE, UPDATE and MERGE on a table without a primary key: the files that hold rows to change are
 * written again, the others stay.
 *
 * <p>Spark first finds the paths of those files by a query of its own, which comes back as a filter
 * of the scan.
 */
final class FileRewrite implements RowLevelOperation {
  private final LockgateTable table;
  private final Command command;
  private volatile LockgateScan scan;

  FileRewrite(LockgateTable table, Command command) {
    this.table = table;
    this.command = command;
  }

  @Override
  public Command command() {
    return command;
  }

  @Override
  public NamedReference[] requiredMetadataAttributes() {
    return LockgateTable.references(List.of(FileColumns.PATH));
  }

  @Override
  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    // Strict: a masked value must not be written as the truth.
    return new LockgateScanBuilder(table, table.scanRequest(options).withStrict(true)) {
      @Override
      public Scan build() {
        scan = scan(true);
        if (command == Command.DELETE
            && !CharVarcharUtils.replaceCharWithVarchar(table.structType())
                .equals(table.structType())) {
          // Spark would look for the files by a condition on the filled up values of CHAR, which
          // that query does not have.
          scan.choosesNoFiles();
        }
        return scan;
      }
    };
  }

  @Override
  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    WriteJob job = new WriteJob(table, info, "rewrite");
    job.rewrites(() -> scan);
    return new LockgateWriteBuilder(table, job);
  }

  @Override
  public String description() {
    return command + " " + table.name();
  }
}
