package io.lockgate.spark.write;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lockgate.spark.files.FileStatistics;
import io.lockgate.spark.files.ParquetFieldWriters;
import io.lockgate.spark.files.ParquetStatistics;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.parquet.format.Util;
import org.apache.parquet.format.converter.ParquetMetadataConverter;
import org.apache.parquet.hadoop.ParquetWriter;
import org.apache.parquet.hadoop.api.WriteSupport;
import org.apache.parquet.hadoop.metadata.BlockMetaData;
import org.apache.parquet.hadoop.metadata.CompressionCodecName;
import org.apache.parquet.hadoop.util.HadoopStreams;
import org.apache.parquet.io.OutputFile;
import org.apache.parquet.io.PositionOutputStream;
import org.apache.parquet.io.api.RecordConsumer;
import org.apache.parquet.schema.MessageType;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructType;

/** Writes a Parquet file with the schema that Python's writer gives to files of the table. */
final class ParquetOutput implements FileOutput {
  static final String FORMAT = "parquet";
  private static final long GROUP_SIZE = 64L << 20;
  private static final int ZSTD_LEVEL = 1;

  /** A row, and for key tables what its file says of it. */
  private static final class FileRow {
    private InternalRow row;
    private int offset;
    private long sequence;
    private byte kind;
  }

  private final WriteSpec spec;
  private final OneFile files;
  private final ParquetWriter<FileRow> writer;
  private final FileRow current = new FileRow();
  private final boolean[] nan;

  ParquetOutput(WriteSpec spec, Configuration conf, Path path) throws IOException {
    this.spec = spec;
    this.nan = new boolean[spec.fields().size()];
    this.files = new OneFile(FileOutput.raw(path.getFileSystem(conf)));
    Configuration settings = new Configuration(conf);
    settings.setInt("parquet.compression.codec.zstd.level", ZSTD_LEVEL);
    // Of a session that encrypts its own Parquet files; no reader of this table has its keys.
    settings.unset("parquet.crypto.factory.class");
    long group = Math.min(GROUP_SIZE, Math.max(1L << 20, spec.targetFileSize() / 2));
    this.writer =
        new Builder(new Target(files, path), new Rows(schema(spec)))
            .withConf(settings)
            .withCompressionCodec(codec(spec.compression()))
            .withRowGroupSize(group)
            .withDictionaryEncoding(spec.dictionaries())
            .build();
  }

  /** The schema is that in the footer of an empty file. */
  private static MessageType schema(WriteSpec spec) throws IOException {
    return new ParquetMetadataConverter()
        .fromParquetMetadata(Util.readFileMetaData(new ByteArrayInputStream(spec.parquetFooter())))
        .getFileMetaData()
        .getSchema();
  }

  private static CompressionCodecName codec(String compression) {
    return switch (compression) {
      case "none" -> CompressionCodecName.UNCOMPRESSED;
      case "lz4" -> CompressionCodecName.LZ4_RAW;
      default -> CompressionCodecName.valueOf(compression.toUpperCase(Locale.ROOT));
    };
  }

  @Override
  public void write(InternalRow row, int offset) throws IOException {
    current.row = row;
    current.offset = offset;
    writer.write(current);
  }

  @Override
  public void write(InternalRow row, int offset, long sequence, byte kind) throws IOException {
    current.sequence = sequence;
    current.kind = kind;
    write(row, offset);
  }

  /** Counts the bytes of the row group in the making before their compression. */
  @Override
  public boolean full() {
    return writer.getDataSize() >= spec.targetFileSize();
  }

  @Override
  public void close() throws IOException {
    writer.close();
  }

  @Override
  public void statistics(ObjectNode all, long rows) {
    List<BlockMetaData> groups = writer.getFooter().getBlocks();
    for (int i = 0; i < nan.length; i++) {
      WriteSpec.Field field = spec.fields().get(i);
      boolean nested =
          field.type() instanceof ArrayType
              || field.type() instanceof MapType
              || field.type() instanceof StructType;
      FileStatistics.Mode mode = spec.statistics(field.name());
      if (mode != null && !nested) {
        all.set(
            field.name(), ParquetStatistics.of(groups, field.name(), field.type(), mode, nan[i]));
      }
    }
  }

  @Override
  public void abandon() {
    files.abandon(writer);
  }

  /** Gives rows to Parquet. */
  private final class Rows extends WriteSupport<FileRow> {
    private final MessageType schema;
    private final ParquetFieldWriters.ValueWriter[] writers;
    private final int before;
    private RecordConsumer to;

    Rows(MessageType schema) {
      this.schema = schema;
      this.before = spec.keyed() ? spec.trimmedKey().length + 2 : 0;
      List<WriteSpec.Field> fields = spec.fields();
      this.writers = new ParquetFieldWriters.ValueWriter[fields.size()];
      for (int i = 0; i < writers.length; i++) {
        writers[i] = ParquetFieldWriters.of(fields.get(i).type(), schema.getType(before + i));
      }
    }

    // The form that takes another class calls this one.
    @SuppressWarnings("deprecation") // its successors exist in some versions only
    @Override
    public WriteContext init(Configuration configuration) {
      return new WriteContext(schema, Map.of());
    }

    @Override
    public void prepareForWrite(RecordConsumer consumer) {
      to = consumer;
    }

    @Override
    public void write(FileRow row) {
      to.startMessage();
      if (spec.keyed()) {
        key(row);
      }
      for (int i = 0; i < writers.length; i++) {
        nan[i] = nan[i] || isNan(row.row, row.offset + i, i);
        put(i, row, before + i);
      }
      to.endMessage();
    }

    private void key(FileRow row) {
      int[] keys = spec.trimmedKey();
      for (int i = 0; i < keys.length; i++) {
        put(keys[i], row, i);
      }
      String sequence = schema.getFieldName(keys.length);
      to.startField(sequence, keys.length);
      to.addLong(row.sequence);
      to.endField(sequence, keys.length);
      String kind = schema.getFieldName(keys.length + 1);
      to.startField(kind, keys.length + 1);
      to.addInteger(row.kind);
      to.endField(kind, keys.length + 1);
    }

    private void put(int column, FileRow row, int index) {
      String name = schema.getFieldName(index);
      ParquetFieldWriters.write(writers[column], row.row, row.offset + column, to, name, index);
    }

    private boolean isNan(InternalRow row, int ordinal, int column) {
      DataType type = spec.fields().get(column).type();
      return type instanceof DoubleType
          ? !row.isNullAt(ordinal) && Double.isNaN(row.getDouble(ordinal))
          : type instanceof FloatType
              && !row.isNullAt(ordinal)
              && Float.isNaN(row.getFloat(ordinal));
    }
  }

  private static final class Builder extends ParquetWriter.Builder<FileRow, Builder> {
    private final Rows rows;

    Builder(OutputFile file, Rows rows) {
      super(file);
      this.rows = rows;
    }

    @Override
    protected Builder self() {
      return this;
    }

    @SuppressWarnings("deprecation") // its successors exist in some versions only
    @Override
    protected WriteSupport<FileRow> getWriteSupport(Configuration conf) {
      return rows;
    }
  }

  /** A file that must not exist yet. */
  private record Target(FileSystem files, Path path) implements OutputFile {
    @Override
    public PositionOutputStream create(long blockSizeHint) throws IOException {
      return HadoopStreams.wrap(files.create(path, false));
    }

    @Override
    public PositionOutputStream createOrOverwrite(long blockSizeHint) throws IOException {
      return create(blockSizeHint);
    }

    @Override
    public boolean supportsBlockSize() {
      return false;
    }

    @Override
    public long defaultBlockSize() {
      return 0;
    }
  }
}
