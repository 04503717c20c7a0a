package io.lockgate.spark.write;

import io.lockgate.spark.bridge.Failure;
import java.io.IOException;
import java.io.Serializable;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.ProjectingInternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.EvalMode$;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Pmod;
import org.apache.spark.sql.catalyst.expressions.Subtract;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.util.CharVarcharUtils;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.DeltaWriter;
import org.apache.spark.sql.connector.write.DeltaWriterFactory;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.connector.write.streaming.StreamingDataWriterFactory;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.LongType$;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.SerializableConfiguration;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Makes the writer of each task, which gets rows in the table's column order and refuses nulls in
 * NOT NULL columns.
 */
public record Writers(
    WriteSpec spec,
    Broadcast<SerializableConfiguration> hadoop,
    StructType schema,
    StructType incoming,
    int[] ordinals)
    implements DataWriterFactory, StreamingDataWriterFactory {
  /** The ordinal of a column that the rows lack: it is null in all of them. */
  public static final int ABSENT = -1;

  @Override
  public DataWriter<InternalRow> createWriter(int partition, long task) {
    return new Rows(open(partition, task), this, false);
  }

  @Override
  public DataWriter<InternalRow> createWriter(int partition, long task, long epoch) {
    return new Rows(open(partition, task), this, true);
  }

  /** The id of the write, the partition and the task make the names of files unique. */
  private TaskWriter open(int partition, long task) {
    String attempt = spec.writeId() + "-" + partition + "-" + task;
    Configuration conf = hadoop.value().value();
    try {
      return spec.keyed()
          ? new UpsertWriter(spec, conf, attempt)
          : new AppendWriter(spec, conf, attempt);
    } catch (IOException failure) {
      throw new UncheckedIOException(
          "cannot write task " + task + " of partition " + partition, failure);
    }
  }

  /** Says that rows lack columns, or have narrower types than the table: streams merge schemas. */
  private boolean isMerged() {
    for (int i = 0; i < ordinals.length; i++) {
      if (ordinals[i] == ABSENT
          || !DataType.equalsIgnoreNullability(
              stored(schema.apply(i).dataType()), stored(incoming.apply(ordinals[i]).dataType()))) {
        return true;
      }
    }
    return false;
  }

  private static DataType stored(DataType type) {
    return CharVarcharUtils.replaceCharVarcharWithString(type);
  }

  private boolean isInOrder() {
    for (int i = 0; i < ordinals.length; i++) {
      if (ordinals[i] != i) {
        return false;
      }
    }
    return true;
  }

  /** Checks and orders rows. */
  private static final class Rows implements DataWriter<InternalRow> {
    final TaskWriter out;
    private final StructType schema;
    private final ProjectingInternalRow ordered;
    private final UnsafeProjection merged;
    private final UnsafeProjection fitted;
    private final UnsafeProjection rounded;

    /** Spark fills up and measures the texts of a batch, but not those of a {@code stream}. */
    Rows(TaskWriter out, Writers factory, boolean stream) {
      this.out = out;
      this.schema = factory.schema;
      this.fitted = stream && CharVarcharUtils.hasCharVarchar(schema) ? fitting(schema) : null;
      this.rounded = rounding(factory.spec);
      this.merged = stream && factory.isMerged() ? merging(factory) : null;
      this.ordered =
          merged != null || factory.isInOrder()
              ? null
              : projection(factory.schema, factory.ordinals);
    }

    @Override
    public void write(InternalRow row) throws IOException {
      out.write(checked(row));
    }

    void update(InternalRow row) throws IOException {
      out.update(checked(row));
    }

    private InternalRow checked(InternalRow row) {
      InternalRow checked = merged == null ? row : merged.apply(row);
      if (ordered != null) {
        ordered.project(row);
        checked = ordered;
      }
      checked = fitted == null ? checked : fitted.apply(checked);
      checked = rounded == null ? checked : rounded.apply(checked);
      for (int i = 0; i < schema.length(); i++) {
        if (!schema.apply(i).nullable() && checked.isNullAt(i)) {
          throw Failure.ofRow(
              "A row has no value in column '" + schema.apply(i).name() + "', which is NOT NULL");
        }
      }
      return checked;
    }

    @Override
    public WriterCommitMessage commit() throws IOException {
      return out.commit();
    }

    @Override
    public void abort() throws IOException {
      out.abort();
    }

    @Override
    public void close() throws IOException {
      out.close();
    }
  }

  /** Fills up CHAR(n) with blanks and fails for texts that are too long. */
  private static UnsafeProjection fitting(StructType schema) {
    List<Expression> columns = new ArrayList<>();
    for (int i = 0; i < schema.length(); i++) {
      DataType type = schema.apply(i).dataType();
      Expression column =
          new BoundReference(i, CharVarcharUtils.replaceCharVarcharWithString(type), true);
      columns.add(CharVarcharUtils.stringLengthCheck(column, type));
    }
    return UnsafeProjection.create(
        CollectionConverters.asScala(columns).toSeq(),
        CollectionConverters.asScala(List.<Attribute>of()).toSeq());
  }

  /**
   * Rounds timestamps of columns of milliseconds down to these, of which Spark's type knows
   * nothing; null where there are none.
   */
  private static UnsafeProjection rounding(WriteSpec spec) {
    List<Expression> columns = new ArrayList<>();
    boolean any = false;
    for (WriteSpec.Field field : spec.fields()) {
      int ordinal = columns.size();
      Expression column = new BoundReference(ordinal, stored(field.type()), true);
      if (field.isOfMilliseconds()) {
        any = true;
        Expression micros = new BoundReference(ordinal, LongType$.MODULE$, true);
        Expression thousand = Literal.create(1_000L, LongType$.MODULE$);
        column = new Subtract(micros, new Pmod(micros, thousand));
      }
      columns.add(column);
    }
    return any
        ? UnsafeProjection.create(
            CollectionConverters.asScala(columns).toSeq(),
            CollectionConverters.asScala(List.<Attribute>of()).toSeq())
        : null;
  }

  /** Gives rows the table's columns: absent ones are null, narrower values get the wider type. */
  private static UnsafeProjection merging(Writers factory) {
    List<Expression> columns = new ArrayList<>();
    for (int i = 0; i < factory.ordinals.length; i++) {
      DataType wanted = stored(factory.schema.apply(i).dataType());
      if (factory.ordinals[i] == ABSENT) {
        columns.add(Literal.create(null, wanted));
        continue;
      }
      DataType given = stored(factory.incoming.apply(factory.ordinals[i]).dataType());
      Expression column = new BoundReference(factory.ordinals[i], given, true);
      columns.add(
          DataType.equalsIgnoreNullability(given, wanted)
              ? column
              : new Cast(column, wanted, Option.apply("UTC"), EvalMode$.MODULE$.ANSI()));
    }
    return UnsafeProjection.create(
        CollectionConverters.asScala(columns).toSeq(),
        CollectionConverters.asScala(List.<Attribute>of()).toSeq());
  }

  private static ProjectingInternalRow projection(StructType schema, int[] ordinals) {
    Object[] boxed = new Object[ordinals.length];
    for (int i = 0; i < boxed.length; i++) {
      boxed[i] = ordinals[i];
    }
    return ProjectingInternalRow.apply(
        schema, scala.collection.immutable.ArraySeq$.MODULE$.unsafeWrapArray(boxed));
  }

  /** Makes the writers of DELETE, UPDATE and MERGE. */
  public record Delta(Writers writers, DeltaColumns columns) implements DeltaWriterFactory {
    @Override
    public DeltaWriter<InternalRow> createWriter(int partition, long task) {
      return new Changes(
          new Rows(writers.open(partition, task), writers, false), writers.schema, columns);
    }
  }

  /**
   * Positions of Spark's row in a row of the table: the primary key and then other columns, as the
   * row's id, and columns that come as its metadata. A row cannot be deleted if columns are {@code
   * missing}.
   */
  public record DeltaColumns(int[] key, int[] id, int[] metadata, List<String> missing)
      implements Serializable {}

  private record Changes(Rows rows, StructType schema, DeltaColumns columns)
      implements DeltaWriter<InternalRow> {
    @Override
    public void delete(InternalRow metadata, InternalRow id) throws IOException {
      if (!columns.missing().isEmpty()) {
        throw Failure.ofRow(
            "MERGE cannot delete rows of this table: it has no value for column '"
                + columns.missing().get(0)
                + "', which 'sequence.field' names and which may be null. Delete them with DELETE,"
                + " or declare the column NOT NULL");
      }
      GenericInternalRow row = new GenericInternalRow(schema.length());
      copy(id, columns.id(), row);
      copy(metadata, columns.metadata(), row);
      rows.out.delete(row);
    }

    private void copy(InternalRow from, int[] ordinals, GenericInternalRow to) {
      for (int i = 0; i < ordinals.length; i++) {
        to.update(ordinals[i], from.get(i, schema.apply(ordinals[i]).dataType()));
      }
    }

    @Override
    public void insert(InternalRow row) throws IOException {
      rows.write(row);
    }

    @Override
    public void update(InternalRow metadata, InternalRow key, InternalRow row) throws IOException {
      int[] keyOrdinals = columns.key();
      for (int i = 0; i < keyOrdinals.length; i++) {
        DataType type = schema.apply(keyOrdinals[i]).dataType();
        // Values of BINARY are arrays.
        if (!Objects.deepEquals(key.get(i, type), row.get(keyOrdinals[i], type))) {
          throw Failure.ofRow(
              "UPDATE must not change column '"
                  + schema.apply(keyOrdinals[i]).name()
                  + "' of the primary key: DELETE the row and INSERT it under its new key");
        }
      }
      rows.update(row);
    }

    @Override
    public WriterCommitMessage commit() throws IOException {
      return rows.commit();
    }

    @Override
    public void abort() throws IOException {
      rows.abort();
    }

    @Override
    public void close() throws IOException {
      rows.close();
    }
  }
}
