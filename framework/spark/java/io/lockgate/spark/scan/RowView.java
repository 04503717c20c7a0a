package io.lockgate.spark.scan;

import io.lockgate.spark.files.FileColumns;
import io.lockgate.spark.files.batches.MappedBatches;
import io.lockgate.spark.files.batches.PairedChanges;
import io.lockgate.spark.files.batches.PlainVector;
import io.lockgate.spark.files.batches.RowKinds;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan.ColumnarSupportMode;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * The rows of a table as {@code t$audit_log}, {@code t$binlog} and {@code t$row_tracking} show
 * them: with their kinds, each column in an array, or with their ids. Values stay where they lie.
 */
public record RowView(boolean kinds, boolean arrays, boolean ids) implements Serializable {
  public static final String ROW_KIND = "rowkind";

  /** The view of a name, null for tables whose rows are shown as they are. */
  public static RowView of(String name) {
    return switch (name) {
      case "audit_log" -> new RowView(true, false, false);
      case "binlog" -> new RowView(true, true, false);
      case "row_tracking" -> new RowView(false, false, true);
      default -> null;
    };
  }

  /** Tells whether changes can be followed as the view shows them. */
  public boolean follows() {
    return kinds;
  }

  /** Tells whether two rows of an update are shown as one. */
  boolean pairs(boolean follows) {
    return arrays && follows;
  }

  /** Tells whether what a view, or null for none, shows is read by columns. */
  static ColumnarSupportMode columnar(RowView view, boolean follows) {
    return view != null && view.pairs(follows)
        ? ColumnarSupportMode.UNSUPPORTED
        : ColumnarSupportMode.SUPPORTED;
  }

  private boolean isKind(String column) {
    return kinds && column.equals(ROW_KIND);
  }

  private boolean isId(String column) {
    return ids && (column.equals(FileColumns.ROW_ID) || column.equals(FileColumns.SEQUENCE_NUMBER));
  }

  /** Tells whether a column of the view has the values of the table's column of that name. */
  public boolean isOfTable(String column) {
    return !arrays && !isKind(column) && !isId(column);
  }

  /** Returns what must be read to show columns of the view. */
  StructType stored(StructType shown, StructType table) {
    Set<String> names = new LinkedHashSet<>();
    StructType stored = new StructType();
    if (arrays) {
      stored = stored.add(FileColumns.VALUE_KIND, DataTypes.ByteType, true);
    }
    for (String name : shown.fieldNames()) {
      if (isKind(name)) {
        stored = arrays ? stored : stored.add(FileColumns.VALUE_KIND, DataTypes.ByteType, true);
      } else if (!isId(name) && names.add(name)) {
        stored = stored.add(table.apply(name));
      }
    }
    if (ids && names.size() < shown.length()) {
      for (String number :
          List.of(
              FileColumns.ROW_ID,
              FileColumns.SEQUENCE_NUMBER,
              FileColumns.ROW_INDEX,
              FileColumns.FIRST_ROW_ID,
              FileColumns.FILE_SEQUENCE)) {
        stored = stored.add(number, DataTypes.LongType, true);
      }
    }
    return stored;
  }

  /** Shows changes that are followed: the two rows of an update together where rows are arrays. */
  PartitionReaderFactory showChanges(
      PartitionReaderFactory readers, StructType stored, StructType columns) {
    return arrays
        ? new PairedChanges(readers, stored, FileColumns.VALUE_KIND, columns, ROW_KIND)
        : show(readers, stored, columns);
  }

  PartitionReaderFactory show(
      PartitionReaderFactory readers, StructType stored, StructType columns) {
    return new MappedBatches(readers, read -> shown(read, stored, columns));
  }

  private ColumnarBatch shown(ColumnarBatch read, StructType stored, StructType shown) {
    List<ColumnVector> columns = new ArrayList<>();
    for (String name : shown.fieldNames()) {
      columns.add(shown(name, read, stored));
    }
    return new ColumnarBatch(columns.toArray(ColumnVector[]::new), read.numRows());
  }

  private ColumnVector shown(String name, ColumnarBatch read, StructType stored) {
    if (isKind(name)) {
      return new Kinds(column(FileColumns.VALUE_KIND, read, stored));
    }
    if (isId(name)) {
      boolean id = name.equals(FileColumns.ROW_ID);
      String ofFile = id ? FileColumns.FIRST_ROW_ID : FileColumns.FILE_SEQUENCE;
      ColumnVector rowIndexes = id ? column(FileColumns.ROW_INDEX, read, stored) : null;
      return new Numbers(column(name, read, stored), column(ofFile, read, stored), rowIndexes);
    }
    ColumnVector column = column(name, read, stored);
    return arrays ? new Wrapped(column) : column;
  }

  private static ColumnVector column(String name, ColumnarBatch read, StructType stored) {
    return read.column(stored.fieldIndex(name));
  }

  /** Kinds of rows as text. */
  private static final class Kinds extends PlainVector {
    private final ColumnVector kinds;

    Kinds(ColumnVector kinds) {
      super(DataTypes.StringType);
      this.kinds = kinds;
    }

    @Override
    public UTF8String getUTF8String(int row) {
      return RowKinds.text(kinds.isNullAt(row) ? 0 : kinds.getByte(row));
    }
  }

  /** Numbers of rows: those in the file, or else those that follow from the file's own. */
  private static final class Numbers extends PlainVector {
    private final ColumnVector stored;
    private final ColumnVector ofFile;
    private final ColumnVector rowIndexes;

    Numbers(ColumnVector stored, ColumnVector ofFile, ColumnVector rowIndexes) {
      super(DataTypes.LongType);
      this.stored = stored;
      this.ofFile = ofFile;
      this.rowIndexes = rowIndexes;
    }

    @Override
    public long getLong(int row) {
      if (!stored.isNullAt(row)) {
        return stored.getLong(row);
      }
      if (ofFile.isNullAt(row)) {
        throw new IllegalStateException(
            "a data file has rows without an id, and its manifest says none");
      }
      return ofFile.getLong(row) + (rowIndexes == null ? 0 : rowIndexes.getLong(row));
    }
  }

  /** Each value as an array of it alone. */
  private static final class Wrapped extends PlainVector {
    private final ColumnVector values;

    Wrapped(ColumnVector values) {
      super(arrayOf(values.dataType()));
      this.values = values;
    }

    private static DataType arrayOf(DataType element) {
      return new ArrayType(element, true);
    }

    @Override
    public ColumnarArray getArray(int row) {
      return new ColumnarArray(values, row, 1);
    }
  }
}
