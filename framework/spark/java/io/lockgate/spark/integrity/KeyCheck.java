package io.lockgate.spark.integrity;

import io.lockgate.spark.files.Columns;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.security.Key;
import org.apache.hadoop.fs.Path;
import org.apache.orc.CompressionCodec;
import org.apache.orc.CompressionKind;
import org.apache.orc.EncryptionAlgorithm;
import org.apache.orc.EncryptionVariant;
import org.apache.orc.OrcProto;
import org.apache.orc.OrcUtils;
import org.apache.orc.Reader;
import org.apache.orc.TypeDescription;
import org.apache.orc.impl.BufferChunk;
import org.apache.orc.impl.CryptoUtils;
import org.apache.orc.impl.HadoopShims;
import org.apache.orc.impl.InStream;
import org.apache.orc.impl.KeyProvider;
import org.apache.orc.impl.OrcCodecPool;

/**
 * Detects a wrong key before any row is decoded.
 *
 * <p>ORC's encryption is not authenticated: with a wrong key its decoder fails somewhere, or yields
 * garbage. The encrypted file statistics of a column are a known message: they must unframe, parse
 * and count as many columns as the column has.
 */
public final class KeyCheck {
  private KeyCheck() {}

  /** Raised when a key of the right name does not open a file. */
  public static final class WrongKeyException extends IOException {
    WrongKeyException(Path path, String key, Throwable cause) {
      super(
          "WrongKeyError: key "
              + key
              + " does not open "
              + path
              + ": it is not the key the file was written with",
          cause);
    }
  }

  public static void verify(Path path, Reader reader, Columns columns) throws IOException {
    for (EncryptionVariant variant : reader.getEncryptionVariants()) {
      if (wanted(variant.getRoot(), columns)) {
        Key key = variant.getFileFooterKey();
        if (key != null) {
          OrcProto.Footer footer = reader.getFileTail().getFooter();
          verify(
              path,
              footer,
              variant.getVariantId(),
              key,
              reader.getCompressionKind(),
              reader.getCompressionSize());
        }
      }
    }
  }

  /** The key of a variant's statistics, from a provider; null where it has none. */
  static Key footerKey(OrcProto.Encryption encryption, int variant, KeyProvider keys)
      throws IOException {
    OrcProto.EncryptionKey key = encryption.getKey(encryption.getVariants(variant).getKey());
    HadoopShims.KeyMetadata metadata =
        new HadoopShims.KeyMetadata(key.getKeyName(), key.getKeyVersion(), algorithm(key));
    return keys.decryptLocalKey(
        metadata, encryption.getVariants(variant).getEncryptedKey().toByteArray());
  }

  /** Proves the key of a variant's statistics on the tail alone. */
  public static void verify(StoredTail tail, int variant, Key key) throws IOException {
    verify(tail.path(), tail.footer(), variant, key, tail.compression(), tail.blockSize());
  }

  private static boolean wanted(TypeDescription root, Columns columns) {
    for (int i = 0; i < columns.size(); i++) {
      TypeDescription column = columns.fileType(i);
      if (column != null
          && root.getId() <= column.getMaximumId()
          && root.getMaximumId() >= column.getId()) {
        return true;
      }
    }
    return false;
  }

  private static void verify(
      Path path,
      OrcProto.Footer footer,
      int variant,
      Key key,
      CompressionKind compression,
      int blockSize)
      throws IOException {
    OrcProto.EncryptionKey description =
        footer.getEncryption().getKey(footer.getEncryption().getVariants(variant).getKey());
    String name = description.getKeyName() + "@" + description.getKeyVersion();
    int found;
    int columns;
    try {
      int root = footer.getEncryption().getVariants(variant).getRoot();
      OrcUtils.isValidTypeTree(footer.getTypesList(), 0);
      TypeDescription column =
          OrcUtils.convertTypeFromProtobuf(footer.getTypesList(), 0).findSubtype(root);
      columns = column.getMaximumId() - root + 1;
      found = statistics(footer, variant, key, compression, blockSize).getColumnCount();
    } catch (IOException | RuntimeException failure) {
      throw new WrongKeyException(path, name, failure);
    }
    if (found != columns) {
      throw new WrongKeyException(path, name, null);
    }
  }

  private static OrcProto.FileStatistics statistics(
      OrcProto.Footer footer, int number, Key key, CompressionKind compression, int blockSize)
      throws IOException {
    OrcProto.EncryptionVariant variant = footer.getEncryption().getVariants(number);
    byte[] encrypted = variant.getFileStatistics().toByteArray();
    EncryptionAlgorithm algorithm = algorithm(footer.getEncryption().getKey(variant.getKey()));
    byte[] iv = new byte[algorithm.getIvLength()];
    CryptoUtils.modifyIvForStream(
            variant.getRoot(), OrcProto.Stream.Kind.FILE_STATISTICS, footer.getStripesCount() + 1L)
        .accept(iv);
    try (CompressionCodec codec = OrcCodecPool.getCodec(compression)) {
      InStream.StreamOptions options = InStream.options().withEncryption(algorithm, key, iv);
      if (codec != null) {
        options.withCodec(codec).withBufferSize(blockSize);
      }
      BufferChunk chunk = new BufferChunk(ByteBuffer.wrap(encrypted), 0);
      InStream in =
          InStream.create("encrypted file statistics", chunk, 0, encrypted.length, options);
      return OrcProto.FileStatistics.parseFrom(InStream.createCodedInputStream(in));
    }
  }

  private static EncryptionAlgorithm algorithm(OrcProto.EncryptionKey key) {
    return EncryptionAlgorithm.fromSerialization(key.getAlgorithm().getNumber());
  }
}
