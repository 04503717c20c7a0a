package io.lockgate.spark.catalog;

import io.lockgate.spark.files.FileColumns;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;

/**
 * A column that every table has although no schema names it: the place of a row, or when it was
 * written.
 */
record FileColumn(String name, DataType dataType, String comment) implements MetadataColumn {
  static MetadataColumn[] of(LockgateTable table) {
    List<MetadataColumn> columns =
        new ArrayList<>(
            List.of(
                new FileColumn(
                    FileColumns.PATH, DataTypes.StringType, "the file that holds the row"),
                new FileColumn(
                    FileColumns.ROW_INDEX,
                    DataTypes.LongType,
                    "the rows of the file that come before the row"),
                new FileColumn(FileColumns.PARTITION, DataTypes.StringType, "the row's partition"),
                new FileColumn(FileColumns.BUCKET, DataTypes.IntegerType, "the row's bucket")));
    if (!table.primaryKey().isEmpty()) {
      columns.add(
          new FileColumn(
              FileColumns.SEQUENCE_NUMBER,
              DataTypes.LongType,
              "the number that the row was written with"));
    }
    return columns.toArray(MetadataColumn[]::new);
  }

  @Override
  public boolean isNullable() {
    return false;
  }
}
