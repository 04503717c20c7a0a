package io.lockgate.spark.integrity;

import io.lockgate.spark.files.io.MetadataLimits;
import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.List;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.PositionedReadable;
import org.apache.orc.CompressionCodec;
import org.apache.orc.CompressionKind;
import org.apache.orc.OrcProto;
import org.apache.orc.impl.BufferChunk;
import org.apache.orc.impl.InStream;
import org.apache.orc.impl.OrcCodecPool;
import org.apache.orc.impl.ReaderImpl;

/**
 * The part of an ORC file behind its stripes, as it is stored: encrypted stripe statistics,
 * metadata, footer, postscript and its length.
 */
final class StoredTail {
  static final int LONGEST_POSTSCRIPT = 256;
  private static final int GUESS = 64 << 10;
  private static final int CHUNK_HEADER = 3;

  private final Path path;
  private final byte[] window;
  private final long windowStart;
  private final OrcProto.PostScript postScript;
  private final int blockSize;
  private final int footerAt;
  private final int postScriptAt;
  private final int start;
  private final OrcProto.Footer footer;
  private final byte[] storedContent;

  private StoredTail(Path path, byte[] window, long windowStart, OrcProto.PostScript postScript)
      throws IOException {
    this.path = path;
    this.window = window;
    this.windowStart = windowStart;
    this.postScript = postScript;
    this.blockSize = blockSize(path, postScript);
    this.postScriptAt = postScriptAt(path, window);
    this.footerAt = postScriptAt - (int) postScript.getFooterLength();
    this.start =
        footerAt - (int) (postScript.getMetadataLength() + postScript.getStripeStatisticsLength());
    this.storedContent = unframed();
    try {
      this.footer =
          OrcProto.Footer.parseFrom(
              decoded(
                  window, footerAt, postScriptAt - footerAt, compression(), blockSize(), "footer"));
    } catch (IOException | RuntimeException failure) {
      throw corrupt(path, "its footer cannot be read: " + failure.getMessage(), failure);
    }
    checkStripes();
  }

  private static int blockSize(Path path, OrcProto.PostScript postScript) throws IOException {
    long size = postScript.getCompressionBlockSize();
    if (size < 0 || size > MetadataLimits.LARGEST_BLOCK) {
      throw corrupt(
          path, "a compression block cannot have " + Long.toUnsignedString(size) + " bytes", null);
    }
    return ReaderImpl.getCompressionBlockSize(postScript);
  }

  /** A stripe that claims to be longer than the file would have memory taken for it. */
  private void checkStripes() throws IOException {
    for (OrcProto.StripeInformation stripe : footer.getStripesList()) {
      long end = 0;
      for (long part :
          List.of(
              stripe.getOffset(),
              stripe.getIndexLength(),
              stripe.getDataLength(),
              stripe.getFooterLength())) {
        end += part;
        if (part < 0 || end > start()) {
          throw corrupt(path, "a stripe of it ends behind the file's stripes", null);
        }
      }
    }
  }

  /** Reads the tail of a file of a known length; whatever else the last 64 KiB hold is kept too. */
  static StoredTail read(Path path, PositionedReadable file, long size) throws IOException {
    byte[] window = bytes(path, file, size - Math.min(size, GUESS), (int) Math.min(size, GUESS));
    long length = length(path, window, size);
    if (length > window.length) {
      byte[] whole =
          java.util.Arrays.copyOf(
              bytes(path, file, size - length, (int) length - window.length), (int) length);
      System.arraycopy(window, 0, whole, whole.length - window.length, window.length);
      window = whole;
    }
    return of(path, window, size);
  }

  /** Takes the last bytes of a file of a known length; the whole tail is among them. */
  static StoredTail of(Path path, byte[] window, long size) throws IOException {
    return new StoredTail(path, window, size - window.length, postScript(path, window));
  }

  /** The length of the tail of a file of which the last bytes, postscript included, are given. */
  static long length(Path path, byte[] window, long size) throws IOException {
    OrcProto.PostScript postScript = postScript(path, window);
    long length = window.length - postScriptAt(path, window);
    for (long part :
        List.of(
            postScript.getFooterLength(),
            postScript.getMetadataLength(),
            postScript.getStripeStatisticsLength())) {
      length += part;
      if (part < 0 || length > size || length > Integer.MAX_VALUE - 16) {
        throw corrupt(path, "its postscript describes a tail longer than the file", null);
      }
    }
    return length;
  }

  private static byte[] bytes(Path path, PositionedReadable file, long position, int length)
      throws IOException {
    byte[] bytes = new byte[length];
    try {
      file.readFully(position, bytes, 0, length);
    } catch (EOFException cut) {
      throw corrupt(
          path,
          "it ends before byte " + (position + length) + ", where the table says it does",
          cut);
    }
    return bytes;
  }

  private static int postScriptAt(Path path, byte[] window) throws IOException {
    int at = window.length - 1 - (window[window.length - 1] & 0xff);
    if (at < 0 || at == window.length - 1) {
      throw corrupt(path, "its last byte is not the length of a postscript", null);
    }
    return at;
  }

  private static OrcProto.PostScript postScript(Path path, byte[] window) throws IOException {
    int at = postScriptAt(path, window);
    try {
      return OrcProto.PostScript.parseFrom(ByteBuffer.wrap(window, at, window.length - 1 - at));
    } catch (IOException failure) {
      throw corrupt(path, "its postscript cannot be read", failure);
    }
  }

  private static IntegrityException corrupt(Path path, String what, Exception cause) {
    return IntegrityException.unreadable(path, what, cause);
  }

  /** The content of a part of a file that is stored in chunks. */
  static byte[] decoded(
      byte[] stored, int offset, int length, CompressionKind kind, int blockSize, String name)
      throws IOException {
    try (CompressionCodec codec = OrcCodecPool.getCodec(kind)) {
      InStream.StreamOptions options = InStream.options();
      if (codec != null) {
        BoundedCodec bounded = new BoundedCodec(codec);
        bounded.bound("its " + name, length);
        options.withCodec(bounded).withBufferSize(blockSize);
      }
      BufferChunk chunk = new BufferChunk(ByteBuffer.wrap(stored, offset, length).slice(), 0);
      return InStream.create(name, chunk, 0, length, options).readAllBytes();
    }
  }

  /** Puts content into chunks that are stored as they are. */
  static byte[] framed(byte[] content, CompressionKind kind, int blockSize) {
    if (kind == CompressionKind.NONE) {
      return content;
    }
    ByteArrayOutputStream framed = new ByteArrayOutputStream(content.length + 64);
    for (int from = 0; from < content.length; from += blockSize) {
      int length = Math.min(blockSize, content.length - from);
      int header = length << 1 | 1;
      framed.write(header);
      framed.write(header >> 8);
      framed.write(header >> 16);
      framed.write(content, from, length);
    }
    return framed.toByteArray();
  }

  /** The footer's content if it lies uncompressed in the file, else null. */
  private byte[] unframed() {
    if (compression() == CompressionKind.NONE) {
      return java.util.Arrays.copyOfRange(window, footerAt, postScriptAt);
    }
    ByteArrayOutputStream content = new ByteArrayOutputStream(postScriptAt - footerAt);
    int at = footerAt;
    while (at < postScriptAt) {
      if (at + CHUNK_HEADER > postScriptAt) {
        return null;
      }
      int header = window[at] & 0xff | (window[at + 1] & 0xff) << 8 | (window[at + 2] & 0xff) << 16;
      at += CHUNK_HEADER;
      int length = header >> 1;
      if ((header & 1) == 0 || length > postScriptAt - at) {
        return null;
      }
      content.write(window, at, length);
      at += length;
    }
    return content.toByteArray();
  }

  Path path() {
    return path;
  }

  OrcProto.PostScript postScript() {
    return postScript;
  }

  OrcProto.Footer footer() {
    return footer;
  }

  CompressionKind compression() {
    return CompressionKind.valueOf(postScript.getCompression().name());
  }

  int blockSize() {
    return blockSize;
  }

  /** The footer's content, or null where it is stored compressed. */
  byte[] storedContent() {
    return storedContent;
  }

  /** Returns where the stripes end and the tail begins, counted from the end of the file. */
  long start() {
    return windowStart + start;
  }

  /** The stored bytes from the end of the stripes up to the footer. */
  ByteBuffer beforeFooter() {
    return ByteBuffer.wrap(window, start, footerAt - start);
  }

  /** The stored postscript and its length. */
  ByteBuffer behindFooter() {
    return ByteBuffer.wrap(window, postScriptAt, window.length - postScriptAt);
  }

  /** Returns where the bytes begin that are held in memory. */
  long held() {
    return windowStart;
  }

  /** Copies bytes that are held. */
  void copy(long position, byte[] target, int offset, int length) {
    System.arraycopy(window, (int) (position - windowStart), target, offset, length);
  }

  long size() {
    return windowStart + window.length;
  }
}
