package io.lockgate.spark.catalog;

import io.lockgate.spark.files.FileColumns;
import io.lockgate.spark.messages.WriteSpec;
import io.lockgate.spark.scan.WriteDistribution;
import io.lockgate.spark.write.Writers;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.connector.distributions.Distribution;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.SortOrder;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.DeltaBatchWrite;
import org.apache.spark.sql.connector.write.DeltaWrite;
import org.apache.spark.sql.connector.write.DeltaWriteBuilder;
import org.apache.spark.sql.connector.write.DeltaWriterFactory;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.RequiresDistributionAndOrdering;
import org.apache.spark.sql.connector.write.SupportsDelta;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * DELETE, UPDATE and MERGE on a table with a primary key: the new state of each changed key is
 * appended.
 */
record PrimaryKeyTableChange(PrimaryKeyTable table, Command command) implements SupportsDelta {
  private static final List<String> PLACES =
      List.of(
          FileColumns.PATH,
          FileColumns.ROW_INDEX,
          FileColumns.PARTITION,
          FileColumns.BUCKET,
          FileColumns.SEQUENCE_NUMBER);

  @Override
  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    return table.changeScan(options);
  }

  /**
   * The primary key, and of a deletion the columns that must have a value: it holds the row that it
   * deletes, and is as new as that by the columns of 'sequence.field'.
   */
  @Override
  public NamedReference[] rowId() {
    return LockgateTable.references(id());
  }

  private List<String> id() {
    List<String> id = new ArrayList<>(table.primaryKey());
    id.addAll(command == Command.UPDATE ? List.of() : values(false));
    return id;
  }

  /**
   * Columns that may be null cannot be part of a row's id; DELETE, and it alone, can have them as
   * metadata. Spark knows the columns that say where a row lies in the condition of a DELETE only
   * if they are here.
   */
  @Override
  public NamedReference[] requiredMetadataAttributes() {
    if (command != Command.DELETE) {
      return new NamedReference[0];
    }
    List<String> columns = new ArrayList<>(values(true));
    columns.addAll(
        PLACES.stream().filter(name -> FileColumns.has(name, table.structType())).toList());
    return LockgateTable.references(columns);
  }

  /** The columns other than the key, either those that may be null or the others. */
  private List<String> values(boolean nullable) {
    return Arrays.stream(table.structType().fields())
        .filter(field -> field.nullable() == nullable)
        .map(StructField::name)
        .filter(name -> !table.primaryKey().contains(name))
        .toList();
  }

  /** The columns that say how new a deletion is, and that Spark does not tell. */
  private List<String> missingAges() {
    return command == Command.DELETE
        ? List.of()
        : table.sequenceFields().stream().filter(values(true)::contains).toList();
  }

  private Writers.DeltaColumns columns() {
    return new Writers.DeltaColumns(
        ordinals(table.primaryKey()),
        ordinals(id()),
        ordinals(command == Command.DELETE ? values(true) : List.of()),
        missingAges());
  }

  private int[] ordinals(List<String> names) {
    return names.stream().mapToInt(name -> table.structType().fieldIndex(name)).toArray();
  }

  @Override
  public DeltaWriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    return new DeltaWriteBuilder() {
      @Override
      public DeltaWrite build() {
        return new Delta(table, info, columns());
      }
    };
  }

  private record Delta(PrimaryKeyTable table, LogicalWriteInfo info, Writers.DeltaColumns columns)
      implements DeltaWrite, RequiresDistributionAndOrdering {
    @Override
    public Distribution requiredDistribution() {
      return WriteDistribution.of(table);
    }

    @Override
    public int requiredNumPartitions() {
      return WriteDistribution.tasks(table);
    }

    @Override
    public SortOrder[] requiredOrdering() {
      return new SortOrder[0];
    }

    @Override
    public DeltaBatchWrite toBatch() {
      return new Batch(new WriteJob(table, info, "delete"), columns);
    }

    @Override
    public String toString() {
      return table.name();
    }
  }

  private record Batch(WriteJob job, Writers.DeltaColumns columns)
      implements WriteJob.Batch, DeltaBatchWrite {
    @Override
    public DeltaWriterFactory createBatchWriterFactory(PhysicalWriteInfo info) {
      WriteSpec reply = job.begin();
      return new Writers.Delta(job.writers(reply, info), columns);
    }
  }
}
