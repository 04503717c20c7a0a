package io.lockgate.spark.integrity;

import io.lockgate.spark.files.io.MetadataLimits;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.orc.CompressionCodec;
import org.apache.orc.DataReader;
import org.apache.orc.OrcConf;
import org.apache.orc.OrcProto;
import org.apache.orc.Reader;
import org.apache.orc.StripeInformation;
import org.apache.orc.impl.BufferChunk;
import org.apache.orc.impl.BufferChunkList;
import org.apache.orc.impl.DataReaderProperties;
import org.apache.orc.impl.InStream;
import org.apache.orc.impl.OrcCodecPool;
import org.apache.orc.impl.ReaderImpl;
import org.apache.orc.impl.RecordReaderUtils;
import org.apache.orc.impl.StreamName;

/**
 * Reads stripes as ORC's own data reader does, but refuses footers and indexes that unpack to more
 * than {@link MetadataLimits} allows, or that claim what a stripe cannot hold.
 */
public final class BoundedStripes implements DataReader {
  /** A dictionary's offsets take four bytes an entry, before one of them is read. */
  private static final int LARGEST_DICTIONARY = 64 << 20;

  private final DataReader stripes;
  private final InStream.StreamOptions options;
  private final CompressionCodec pooled;
  private final BoundedCodec codec;
  private long dataStart;

  private BoundedStripes(
      DataReader stripes, InStream.StreamOptions options, CompressionCodec pooled) {
    this.stripes = stripes;
    this.options = options;
    this.pooled = pooled;
    this.codec = (BoundedCodec) options.getCodec();
  }

  /** A reader of the stripes of an open file, for one {@link org.apache.orc.RecordReader}. */
  public static BoundedStripes of(
      Reader reader, Path path, FileSystem files, Reader.Options wanted) {
    InStream.StreamOptions options = InStream.options();
    CompressionCodec pooled = OrcCodecPool.getCodec(reader.getCompressionKind());
    if (pooled != null) {
      options.withCodec(new BoundedCodec(pooled)).withBufferSize(reader.getCompressionSize());
    }
    DataReaderProperties.Builder properties =
        DataReaderProperties.builder()
            .withCompression(options)
            .withFileSystemSupplier(() -> files)
            .withPath(path)
            .withMaxDiskRangeChunkLimit(
                (Integer) OrcConf.ORC_MAX_DISK_RANGE_CHUNK_LIMIT.getDefaultValue())
            .withZeroCopy(false)
            .withMinSeekSize(wanted.minSeekSize())
            .withMinSeekSizeTolerance(wanted.minSeekSizeTolerance());
    FSDataInputStream opened = ((ReaderImpl) reader).takeFile();
    if (opened != null) {
      properties.withFile(opened);
    }
    return new BoundedStripes(
        RecordReaderUtils.createDefaultDataReader(properties.build()), options, pooled);
  }

  @Override
  public void open() throws IOException {
    stripes.open();
  }

  @Override
  public OrcProto.StripeFooter readStripeFooter(StripeInformation stripe) throws IOException {
    bound("the footer of stripe " + stripe.getStripeId(), stripe.getFooterLength());
    OrcProto.StripeFooter footer = stripes.readStripeFooter(stripe);
    release();
    long indexes = length(footer, StreamName.Area.INDEX);
    long data = length(footer, StreamName.Area.DATA);
    if (indexes + data > stripe.getIndexLength() + stripe.getDataLength()) {
      throw new IOException(
          "stripe " + stripe.getStripeId() + " is shorter than the streams that its footer names");
    }
    checkDictionaries(footer, stripe);
    dataStart = stripe.getOffset() + indexes;
    return footer;
  }

  /** The bytes of the streams of an area, each no longer than a file can be. */
  private static long length(OrcProto.StripeFooter footer, StreamName.Area area)
      throws IOException {
    List<OrcProto.Stream> all = new ArrayList<>(footer.getStreamsList());
    footer.getEncryptionList().forEach(variant -> all.addAll(variant.getStreamsList()));
    long length = 0;
    for (OrcProto.Stream stream : all) {
      boolean placeholder =
          stream.getKind() == OrcProto.Stream.Kind.ENCRYPTED_INDEX
              || stream.getKind() == OrcProto.Stream.Kind.ENCRYPTED_DATA;
      if (!placeholder && StreamName.getArea(stream.getKind()) == area) {
        length += stream.getLength();
      }
      if (stream.getLength() < 0 || length < 0) {
        throw new IOException("a stream of column " + stream.getColumn() + " has no length");
      }
    }
    return length;
  }

  private static void checkDictionaries(OrcProto.StripeFooter footer, StripeInformation stripe)
      throws IOException {
    List<OrcProto.ColumnEncoding> all = new ArrayList<>(footer.getColumnsList());
    footer.getEncryptionList().forEach(variant -> all.addAll(variant.getEncodingList()));
    for (OrcProto.ColumnEncoding encoding : all) {
      if (encoding.getDictionarySize() < 0 || encoding.getDictionarySize() > LARGEST_DICTIONARY) {
        throw new IOException(
            "stripe "
                + stripe.getStripeId()
                + " claims a dictionary of "
                + Integer.toUnsignedString(encoding.getDictionarySize())
                + " entries");
      }
    }
  }

  /** Indexes are read before values, and parsed before anything else is read. */
  @Override
  public BufferChunkList readFileData(BufferChunkList ranges, boolean direct) throws IOException {
    BufferChunk first = ranges.get();
    if (first != null && first.getOffset() < dataStart) {
      bound("the indexes of a stripe", total(ranges));
    } else {
      release();
    }
    return stripes.readFileData(ranges, direct);
  }

  private static long total(BufferChunkList ranges) {
    long total = 0;
    for (BufferChunk chunk = ranges.get(); chunk != null; chunk = (BufferChunk) chunk.next) {
      total += chunk.getLength();
    }
    return total;
  }

  private void bound(String name, long bytes) {
    if (codec != null) {
      codec.bound(name, bytes);
    }
  }

  private void release() {
    if (codec != null) {
      codec.release();
    }
  }

  @Override
  public boolean isTrackingDiskRanges() {
    return stripes.isTrackingDiskRanges();
  }

  /** Nobody calls it any more; the interface keeps it. */
  @Deprecated
  @Override
  public void releaseBuffer(ByteBuffer buffer) {
    throw new UnsupportedOperationException("buffers are released together");
  }

  @Override
  public void releaseAllBuffers() {
    stripes.releaseAllBuffers();
  }

  /** ORC clones what it is given; this one was made for one reader, which closes it. */
  @Override
  public DataReader clone() {
    return this;
  }

  /** May be called again: a codec that is given back twice would serve two readers at a time. */
  @Override
  public void close() throws IOException {
    boolean held = options.getCodec() != null;
    options.withCodec(null); // or it would be put where ORC keeps its own
    stripes.close();
    if (held) {
      OrcCodecPool.returnCodec(pooled.getKind(), pooled);
    }
  }

  @Override
  public InStream.StreamOptions getCompressionOptions() {
    return options;
  }
}
