package io.lockgate.spark.write;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lockgate.spark.bridge.Values;
import io.lockgate.spark.files.Columns;
import io.lockgate.spark.files.FieldWriters;
import io.lockgate.spark.files.FileStatistics;
import io.lockgate.spark.files.OrcTypes;
import io.lockgate.spark.integrity.TaggingFiles;
import io.lockgate.spark.keys.LockgateKeys;
import io.lockgate.spark.masks.Masks;
import io.lockgate.spark.read.MergeSource;
import java.io.IOException;
import java.util.List;
import java.util.Locale;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.ChecksumFileSystem;
import org.apache.hadoop.fs.FileSystem;
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

/**
 * Writes one data file: for key tables key columns, sequence number and kind before the table's own
 * columns.
 */
public final class DataFileWriter {
  static final byte INSERT = 0;
  static final byte DELETE = 3;
  private static final int BATCH_ROWS = 1024;
  private static final long STRIPE_SIZE = 64L << 20;
  private static final int SEQUENCE_ID = Integer.MAX_VALUE - 1;
  private static final int KIND_ID = Integer.MAX_VALUE - 2;

  private final WriteSpec spec;
  private final FileSystem files;
  private final Path path;
  private final TaggingFiles tagging;
  private final Writer writer;
  private final VectorizedRowBatch batch;
  private final FieldWriters.ValueWriter[] writers;
  private final int before;
  private long rows;
  private long deletes;
  private long firstSequence = -1;
  private long lastSequence = -1;
  private InternalRow firstKey;
  private InternalRow lastKey;

  public DataFileWriter(WriteSpec spec, Configuration conf, Path path) throws IOException {
    this.spec = spec;
    this.path = path;
    this.files = raw(path.getFileSystem(conf));
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
    this.writer = Masks.createWriter(path, options);
    this.batch = schema.createRowBatch(BATCH_ROWS);
    batch.reset();
    this.writers =
        spec.fields().stream()
            .map(field -> FieldWriters.of(field.type()))
            .toArray(FieldWriters.ValueWriter[]::new);
  }

  private static Configuration settings(Configuration conf, WriteSpec spec) {
    if (spec.dictionaries()) {
      return conf;
    }
    Configuration settings = new Configuration(conf);
    OrcConf.DICTIONARY_KEY_SIZE_THRESHOLD.setDouble(settings, 0);
    return settings;
  }

  /**
   * Hadoop's local file system would put a hidden checksum file next to each data file; tables have
   * none.
   */
  static FileSystem raw(FileSystem files) {
    return files instanceof ChecksumFileSystem checked ? checked.getRawFileSystem() : files;
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

  /** Adds a row, whose table columns begin at {@code offset}. */
  public void write(InternalRow row, int offset) throws IOException {
    int at = batch.size;
    for (int i = 0; i < writers.length; i++) {
      FieldWriters.write(writers[i], row, offset + i, batch.cols[before + i], at);
    }
    added();
  }

  /** Adds a row of a key table; rows come in the order of their keys. */
  public void write(InternalRow row, int offset, long sequence, byte kind) throws IOException {
    int at = batch.size;
    int[] keys = spec.trimmedKey();
    for (int i = 0; i < keys.length; i++) {
      FieldWriters.write(writers[keys[i]], row, offset + keys[i], batch.cols[i], at);
    }
    ((LongColumnVector) batch.cols[keys.length]).vector[at] = sequence;
    ((LongColumnVector) batch.cols[keys.length + 1]).vector[at] = kind;
    deletes += kind == DELETE ? 1 : 0;
    firstSequence = firstSequence < 0 ? sequence : firstSequence;
    lastSequence = sequence;
    write(row, offset);
  }

  private void added() throws IOException {
    rows++;
    if (++batch.size == BATCH_ROWS) {
      flush();
    }
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

  long rows() {
    return rows;
  }

  /** Tells whether the file has its target size; looked at once a batch, exact to a stripe. */
  boolean full() throws IOException {
    if (batch.size != 0 || rows % (8 * BATCH_ROWS) != 0) {
      return false;
    }
    List<StripeInformation> stripes = writer.getStripes();
    if (stripes.isEmpty()) {
      return false;
    }
    StripeInformation last = stripes.get(stripes.size() - 1);
    return last.getOffset() + last.getLength() >= spec.targetFileSize();
  }

  /** Remembers the file's bounds by key: the first and the last row, copied by the caller. */
  void bounds(InternalRow first, InternalRow last) {
    firstKey = first;
    lastKey = last;
  }

  /** Finishes the file and describes it for the commit. */
  public ObjectNode finish() throws IOException {
    flush();
    writer.close();
    ObjectNode file = JsonNodeFactory.instance.objectNode();
    file.put("name", path.getName())
        .put("size", files.getFileStatus(path).getLen())
        .put("rows", rows);
    if (spec.keyed()) {
      key(file.putArray("min_key"), firstKey);
      key(file.putArray("max_key"), lastKey);
    } else {
      file.putArray("min_key");
      file.putArray("max_key");
    }
    file.put("min_sequence", spec.keyed() ? firstSequence : 0)
        .put("max_sequence", spec.keyed() ? lastSequence : 0)
        .put("delete_rows", deletes);
    statistics(file.putObject("stats"));
    return file;
  }

  private void key(com.fasterxml.jackson.databind.node.ArrayNode bound, InternalRow row) {
    int[] keys = spec.trimmedKey();
    for (int i = 0; i < keys.length; i++) {
      bound.add(Values.toJson(row, i, spec.fields().get(keys[i]).type()));
    }
  }

  private void statistics(ObjectNode all) throws IOException {
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

  /** Closes the file whatever state it is in, and deletes it. */
  void discard() throws IOException {
    try {
      writer.close();
    } catch (IOException | RuntimeException ignored) {
      // The file is deleted: what became of it does not matter.
    } finally {
      if (tagging != null) {
        tagging.abandon();
      }
    }
    files.delete(path, false);
  }
}
