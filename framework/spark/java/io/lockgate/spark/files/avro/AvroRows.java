package io.lockgate.spark.files.avro;

import java.io.Closeable;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Function;
import org.apache.avro.AvroRuntimeException;
import org.apache.avro.Schema;
import org.apache.avro.file.DataFileReader;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.mapred.FsInput;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * The rows of a range of one Avro file, as rows of Spark.
 *
 * <p>A row belongs to the range in which its block begins, as in Hadoop's reader of Avro. The
 * conversion of values is that of Paimon's {@code AvroSchemaConverter}.
 */
public final class AvroRows implements Closeable {
  private final DataFileReader<GenericRecord> file;
  private final long end;
  private final GenericInternalRow row;
  private AvroValues.Conversion[] conversions;
  private GenericRecord record;
  private long position;

  private AvroRows(DataFileReader<GenericRecord> file, long end, int columns) {
    this.file = file;
    this.end = end;
    this.row = new GenericInternalRow(columns);
  }

  /**
   * Opens a file; {@code columns} chooses among the names of its columns, each once, and says their
   * types. {@code counted}: whether {@link #position} is asked for.
   */
  public static AvroRows open(
      Configuration conf,
      Path path,
      Range range,
      boolean counted,
      Function<List<String>, StructType> columns)
      throws IOException {
    GenericDatumReader<GenericRecord> records = new GenericDatumReader<>();
    DataFileReader<GenericRecord> file = new DataFileReader<>(new FsInput(path, conf), records);
    try {
      Schema schema = file.getSchema();
      if (schema.getType() != Schema.Type.RECORD) {
        throw new IOException("its rows are no records, but of the type " + schema.getType());
      }
      if (!takesBytes(schema, new HashSet<>())) {
        throw new IOException("its rows take no bytes, so it can claim any number of them");
      }
      StructType wanted =
          columns.apply(schema.getFields().stream().map(Schema.Field::name).toList());
      AvroRows rows = new AvroRows(file, range.end(), wanted.length());
      records.setExpected(rows.project(schema, wanted));
      rows.begin(range.start(), counted);
      return rows;
    } catch (IOException | RuntimeException failure) {
      file.close();
      throw failure;
    }
  }

  /**
   * Tells whether each value takes a byte or more; {@code seen}: the names of records around it.
   */
  private static boolean takesBytes(Schema schema, Set<String> seen) {
    return switch (schema.getType()) {
      case NULL -> false;
      case RECORD ->
          seen.add(schema.getFullName())
              && schema.getFields().stream().anyMatch(field -> takesBytes(field.schema(), seen));
      case FIXED -> schema.getFixedSize() > 0;
      default -> true;
    };
  }

  /** Bytes of a file, from the first to before the last. */
  public record Range(long start, long end) {}

  /** Chooses the columns of a file; returns the schema that has them alone. */
  private Schema project(Schema schema, StructType wanted) throws IOException {
    StructField[] fields = wanted.fields();
    conversions = new AvroValues.Conversion[fields.length];
    List<Schema.Field> chosen = new ArrayList<>();
    for (int i = 0; i < fields.length; i++) {
      Schema.Field field = schema.getField(fields[i].name());
      conversions[i] = AvroValues.conversion(field.schema(), fields[i].dataType(), field.name());
      chosen.add(new Schema.Field(field, field.schema()));
    }
    Schema some =
        Schema.createRecord(
            schema.getName(), schema.getDoc(), schema.getNamespace(), schema.isError());
    some.setFields(chosen);
    return some;
  }

  private void begin(long start, boolean counted) throws IOException {
    if (start > 0 && !counted) {
      file.sync(start);
      return;
    }
    while (start > 0 && file.hasNext() && !file.pastSync(start)) {
      position += file.getBlockCount();
      file.nextBlock();
    }
  }

  /** Moves to the next row; false at the end of the range. */
  public boolean next() throws IOException {
    try {
      if (!file.hasNext() || file.pastSync(end)) {
        return false;
      }
      record = file.next(record);
      for (int i = 0; i < conversions.length; i++) {
        row.update(i, conversions[i].convert(record.get(i)));
      }
    } catch (AvroRuntimeException | ArithmeticException | IndexOutOfBoundsException failure) {
      throw new IOException(failure.getMessage(), failure);
    } catch (StackOverflowError failure) {
      // An Error would end the executor, for any file that asks for it.
      throw new IOException("its values are nested too deep");
    } catch (ClassCastException | NullPointerException failure) {
      throw new IOException("it holds a value that is not of its column's type", failure);
    }
    position++;
    return true;
  }

  /** The row; it is used again for the next one. */
  public GenericInternalRow row() {
    return row;
  }

  /** The number of rows in the file before the next one; only if rows are counted. */
  public long position() {
    return position;
  }

  @Override
  public void close() throws IOException {
    file.close();
  }
}
