package io.lockgate.spark.files.parquet;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.parquet.HadoopReadOptions;
import org.apache.parquet.ParquetReadOptions;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.parquet.hadoop.metadata.BlockMetaData;
import org.apache.parquet.hadoop.metadata.FileMetaData.EncryptionType;
import org.apache.parquet.hadoop.metadata.ParquetMetadata;
import org.apache.parquet.hadoop.util.HadoopInputFile;
import org.apache.parquet.io.SeekableInputStream;

/**
 * Footers of Parquet files that were read lately, in this JVM.
 *
 * <p>Data files never change, so that a footer needs to be parsed once; one whose file has another
 * length or time of change is read again. They are of files in the clear, and hold no keys.
 */
public final class ParquetFooters {
  // Of a kilobyte or less each.
  private static final int MOST_CHUNKS = 20_000;
  private static final Map<Key, ParquetMetadata> KEPT = new LinkedHashMap<>(16, 0.75f, true);
  private static int chunks;

  private ParquetFooters() {}

  private record Key(String path, long length, long changed) {}

  /**
   * The footer of a file, with those row groups whose middle is within {@code length} bytes from
   * {@code start} on.
   */
  public static ParquetMetadata read(
      Configuration conf, FileStatus file, SeekableInputStream stream, long start, long length)
      throws IOException {
    Key key = new Key(file.getPath().toString(), file.getLen(), file.getModificationTime());
    ParquetMetadata whole = kept(key);
    if (whole == null) {
      ParquetReadOptions options = HadoopReadOptions.builder(conf, file.getPath()).build();
      whole = ParquetFileReader.readFooter(HadoopInputFile.fromStatus(file, conf), options, stream);
      if (whole.getFileMetaData().getEncryptionType() == EncryptionType.UNENCRYPTED) {
        keep(key, whole);
      }
    }
    List<BlockMetaData> within = new ArrayList<>();
    for (BlockMetaData group : whole.getBlocks()) {
      long middle = group.getStartingPos() + group.getCompressedSize() / 2;
      if (middle >= start && middle - start < length) {
        within.add(group);
      }
    }
    return new ParquetMetadata(whole.getFileMetaData(), within);
  }

  private static synchronized ParquetMetadata kept(Key key) {
    return KEPT.get(key);
  }

  private static synchronized void keep(Key key, ParquetMetadata footer) {
    int size = size(footer);
    if (size > MOST_CHUNKS / 10 || KEPT.put(key, footer) != null) {
      return;
    }
    chunks += size;
    for (Iterator<ParquetMetadata> oldest = KEPT.values().iterator(); chunks > MOST_CHUNKS; ) {
      chunks -= size(oldest.next());
      oldest.remove();
    }
  }

  private static int size(ParquetMetadata footer) {
    return 1 + footer.getBlocks().stream().mapToInt(group -> group.getColumns().size()).sum();
  }
}
