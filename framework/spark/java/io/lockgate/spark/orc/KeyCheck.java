package io.lockgate.spark.orc;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.security.Key;
import org.apache.hadoop.fs.Path;
import org.apache.orc.CompressionCodec;
import org.apache.orc.EncryptionAlgorithm;
import org.apache.orc.EncryptionVariant;
import org.apache.orc.OrcProto;
import org.apache.orc.Reader;
import org.apache.orc.TypeDescription;
import org.apache.orc.impl.BufferChunk;
import org.apache.orc.impl.CryptoUtils;
import org.apache.orc.impl.InStream;
import org.apache.orc.impl.OrcCodecPool;

/**
 * Tells a wrong key from a right one before any row is decoded.
 *
 * <p>ORC's encryption is not authenticated: with a wrong key its decoder fails somewhere, or yields garbage. The encrypted file
 * statistics of a column are a known message: they must unframe, parse and count as many columns as the column has.
 */
final class KeyCheck {
  private KeyCheck() {}

  /** Raised when a key of the right name does not open a file. */
  static final class WrongKeyException extends IOException {
    WrongKeyException(Path path, String key, Throwable cause) {
      super("WrongKeyError: key " + key + " does not open " + path + ": it is not the key the file was written with", cause);
    }
  }

  static void verify(Path path, Reader reader, Columns columns) throws IOException {
    for (EncryptionVariant variant : reader.getEncryptionVariants()) {
      if (wanted(variant.getRoot(), columns)) {
        Key key = variant.getFileFooterKey();
        if (key != null) {
          verify(path, reader, variant, key);
        }
      }
    }
  }

  private static boolean wanted(TypeDescription root, Columns columns) {
    for (int i = 0; i < columns.size(); i++) {
      TypeDescription column = columns.fileType(i);
      if (column != null && root.getId() <= column.getMaximumId() && root.getMaximumId() >= column.getId()) {
        return true;
      }
    }
    return false;
  }

  private static void verify(Path path, Reader reader, EncryptionVariant variant, Key key) throws IOException {
    String name = variant.getKeyDescription().getKeyName() + "@" + variant.getKeyDescription().getKeyVersion();
    OrcProto.Footer footer = reader.getFileTail().getFooter();
    byte[] encrypted = footer.getEncryption().getVariants(variant.getVariantId()).getFileStatistics().toByteArray();
    int columns = variant.getRoot().getMaximumId() - variant.getRoot().getId() + 1;
    int found;
    try {
      found = statistics(reader, variant, key, encrypted, footer.getStripesCount()).getColumnCount();
    } catch (IOException | RuntimeException failure) {
      throw new WrongKeyException(path, name, failure);
    }
    if (found != columns) {
      throw new WrongKeyException(path, name, null);
    }
  }

  private static OrcProto.FileStatistics statistics(Reader reader, EncryptionVariant variant, Key key, byte[] encrypted,
      int stripes) throws IOException {
    EncryptionAlgorithm algorithm = variant.getKeyDescription().getAlgorithm();
    byte[] iv = new byte[algorithm.getIvLength()];
    CryptoUtils.modifyIvForStream(variant.getRoot().getId(), OrcProto.Stream.Kind.FILE_STATISTICS, stripes + 1L).accept(iv);
    try (CompressionCodec codec = OrcCodecPool.getCodec(reader.getCompressionKind())) {
      InStream.StreamOptions options = InStream.options().withEncryption(algorithm, key, iv);
      if (codec != null) {
        options.withCodec(codec).withBufferSize(reader.getCompressionSize());
      }
      BufferChunk chunk = new BufferChunk(ByteBuffer.wrap(encrypted), 0);
      InStream in = InStream.create("encrypted file statistics", chunk, 0, encrypted.length, options);
      return OrcProto.FileStatistics.parseFrom(InStream.createCodedInputStream(in));
    }
  }
}
