package io.lockgate.spark.write;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lockgate.spark.files.Columns;
import io.lockgate.spark.files.FieldWriters;
import io.lockgate.spark.files.FileStatistics;
import io.lockgate.spark.files.OrcTypes;
import io.lockgate.spark.files.masks.Masks;
import io.lockgate.spark.integrity.TaggingFiles;
import io.lockgate.spark.keys.LockgateKeys;
import io.lockgate.spark.read.MergeSource;
import java.io.IOException;
import java.util.List;
import java.util.Locale;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSError;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hive.ql.exec.vector.LongColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.VectorizedRowBatch;
import org.apache.orc.ColumnStatistics;
import org.apache.orc.CompressionKind;
import org.apache.orc.OrcConf;
import org.apache.orc.OrcFile;
import org.apache.orc.StripeInformation;
import org.apache.orc.TypeDescription;
import org.apache.orc.Writer;
import org.apache.orc.impl.KeyProvider;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructType;

/** Writes an ORC file by ORC's own writer, encrypted as the table says. */
final class OrcOutput implements FileOutput {
  private static final int BATCH_ROWS = 1024;
  private static final long STRIPE_SIZE = 64L << 20;
  private static final int SEQUENCE_ID = Integer.MAX_VALUE - 1;
  private static final int KIND_ID = Integer.MAX_VALUE - 2;

  private final WriteSpec spec;
  private final OneFile files;
  private final TaggingFiles tagging;
  private final Writer writer;
  private final VectorizedRowBatch batch;
  private final FieldWriters.ValueWriter[] writers;
  private final int before;

  OrcOutput(WriteSpec spec, Configuration conf, Path path) throws IOException {
    this.spec = spec;
    this.files = new OneFile(FileOutput.raw(path.getFileSystem(conf)));
    this.before = spec.keyed() ? spec.trimmedKey().length + 2 : 0;
    TypeDescription schema = schema(spec);
    CompressionKind compression =
        CompressionKind.valueOf(spec.compression().toUpperCase(Locale.ROOT));
    KeyProvider keys = LockgateKeys.of(spec.keyScope());
    this.tagging = spec.encrypt() == null ? null : new TaggingFiles(files, compression, keys);
    OrcFile.WriterOptions options =
        OrcFile.writerOptions(settings(conf, spec))
            .setSchema(schema)
            .fileSystem(files)
            .useUTCTimestamp(true)
            .compress(compression)
            .stripeSize(Math.min(STRIPE_SIZE, Math.max(1L << 20, spec.targetFileSize() / 2)))
            .setKeyProvider(keys)
            .encrypt(spec.encrypt())
            .masks(spec.mask());
    if (tagging != null) {
      // Padding between stripes would be bytes that no tag covers. Bloom filters, which a session
      // may ask for by its
      // configuration, ORC writes in the clear for encrypted columns too, and of their true values.
      options.fileSystem(tagging).blockPadding(false).bloomFilterColumns("");
    }
    this.writer = created(path, options);
    this.batch = schema.createRowBatch(BATCH_ROWS);
    batch.reset();
    this.writers =
        spec.fields().stream()
            .map(field -> FieldWriters.of(field.type()))
            .toArray(FieldWriters.ValueWriter[]::new);
  }

  private Writer created(Path path, OrcFile.WriterOptions options) throws IOException {
    try {
      return Masks.createWriter(path, options);
    } catch (IOException | RuntimeException | FSError failure) {
      files.abandon(null);
      throw failure;
    }
  }

  private static Configuration settings(Configuration conf, WriteSpec spec) {
    if (spec.dictionaries()) {
      return conf;
    }
    Configuration settings = new Configuration(conf);
    OrcConf.DICTIONARY_KEY_SIZE_THRESHOLD.setDouble(settings, 0);
    return settings;
  }

  private static TypeDescription schema(WriteSpec spec) {
    TypeDescription schema = TypeDescription.createStruct();
    List<WriteSpec.Field> fields = spec.fields();
    if (spec.keyed()) {
      for (int ordinal : spec.trimmedKey()) {
        WriteSpec.Field key = fields.get(ordinal);
        schema.addField(
            MergeSource.KEY_PREFIX + key.name(),
            OrcTypes.toOrc(key.type(), MergeSource.KEY_ID_BASE + key.id()));
      }
      schema.addField("_SEQUENCE_NUMBER", withId(TypeDescription.createLong(), SEQUENCE_ID));
      schema.addField("_VALUE_KIND", withId(TypeDescription.createByte(), KIND_ID));
    }
    for (WriteSpec.Field field : fields) {
      schema.addField(field.name(), OrcTypes.toOrc(field.type(), field.id()));
    }
    return schema;
  }

  private static TypeDescription withId(TypeDescription type, int id) {
    return type.setAttribute(Columns.FIELD_ID, String.valueOf(id));
  }

  @Override
  public void write(InternalRow row, int offset) throws IOException {
    int at = batch.size;
    for (int i = 0; i < writers.length; i++) {
      FieldWriters.write(writers[i], row, offset + i, batch.cols[before + i], at);
    }
    if (++batch.size == BATCH_ROWS) {
      flush();
    }
  }

  @Override
  public void write(InternalRow row, int offset, long sequence, byte kind) throws IOException {
    int at = batch.size;
    int[] keys = spec.trimmedKey();
    for (int i = 0; i < keys.length; i++) {
      FieldWriters.write(writers[keys[i]], row, offset + keys[i], batch.cols[i], at);
    }
    ((LongColumnVector) batch.cols[keys.length]).vector[at] = sequence;
    ((LongColumnVector) batch.cols[keys.length + 1]).vector[at] = kind;
    write(row, offset);
  }

  private void flush() throws IOException {
    if (batch.size > 0) {
      writer.addRowBatch(batch);
      batch.reset();
      if (tagging != null) {
        tagging.pass(writer);
      }
    }
  }

  /** Exact to a stripe. */
  @Override
  public boolean full() throws IOException {
    List<StripeInformation> stripes = writer.getStripes();
    if (stripes.isEmpty()) {
      return false;
    }
    StripeInformation last = stripes.get(stripes.size() - 1);
    return last.getOffset() + last.getLength() >= spec.targetFileSize();
  }

  @Override
  public void close() throws IOException {
    flush();
    writer.close();
  }

  @Override
  public void statistics(ObjectNode all, long rows) throws IOException {
    ColumnStatistics[] statistics = writer.getStatistics();
    List<TypeDescription> columns = writer.getSchema().getChildren();
    for (int i = 0; i < writers.length; i++) {
      WriteSpec.Field field = spec.fields().get(i);
      TypeDescription column = columns.get(before + i);
      boolean nested =
          field.type() instanceof ArrayType
              || field.type() instanceof MapType
              || field.type() instanceof StructType;
      FileStatistics.Mode mode = spec.statistics(field.name());
      if (mode != null
          && !nested
          && column.getAttributeValue(TypeDescription.ENCRYPT_ATTRIBUTE) == null) {
        all.set(
            field.name(), FileStatistics.of(statistics[column.getId()], field.type(), rows, mode));
      }
    }
  }

  @Override
  public void abandon() throws IOException {
    try {
      files.abandon(writer);
    } finally {
      if (tagging != null) {
        tagging.abandon();
      }
    }
  }
}
