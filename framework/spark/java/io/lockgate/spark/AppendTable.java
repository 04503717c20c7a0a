package io.lockgate.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lockgate.spark.orc.FileColumns;
import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.connector.catalog.SupportsMetadataColumns;
import org.apache.spark.sql.connector.write.RowLevelOperationBuilder;
import org.apache.spark.sql.connector.write.RowLevelOperationInfo;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;

/** A table without a primary key: each row lies in one file, which is written anew if one of its rows changes. */
final class AppendTable extends LockgateTable implements SupportsMetadataColumns {
  AppendTable(ObjectNode request, JsonNode spec) {
    super(request, spec);
  }

  @Override
  public MetadataColumn[] metadataColumns() {
    return new MetadataColumn[] {
      new OfFile(FileColumns.PATH, DataTypes.StringType, "the file that holds the row"),
      new OfFile(FileColumns.ROW_INDEX, DataTypes.LongType, "the rows of the file that come before the row")
    };
  }

  @Override
  public RowLevelOperationBuilder newRowLevelOperationBuilder(RowLevelOperationInfo info) {
    if (structType().getFieldIndex(FileColumns.PATH).isDefined()) {
      throw Bridge.failure(
          info.command() + " needs the name " + FileColumns.PATH + ", which a column of " + name() + " has: rename the column");
    }
    return () -> new FileRewrite(this, info.command());
  }

  private record OfFile(String name, DataType dataType, String comment) implements MetadataColumn {
    @Override
    public boolean isNullable() {
      return false;
    }
  }
}
