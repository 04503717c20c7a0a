package io.lockgate.spark.bridge;

import java.io.IOException;
import java.nio.ByteBuffer;

/**
 * The beginning of a frame: one byte for its kind and four for its length, big-endian.
 *
 * <p>The twin of {@code framework/spark/bridge/transport.py}; both run the vectors of {@code
 * tests/fixtures/bridge_frames.json}.
 */
final class FrameHeader {
  /** A longer payload goes through a file. */
  static final int LARGEST_FRAME = 4 << 20;

  static final int LARGEST_MESSAGE = 1 << 30;

  static final int SIZE = 5;

  private static final byte INLINE = 0;
  private static final byte IN_FILE = 1;

  private FrameHeader() {}

  /** Puts the header of a payload that follows it, or that is in a file. */
  static ByteBuffer put(ByteBuffer out, boolean inline, int length) {
    return out.put(inline ? INLINE : IN_FILE).putInt(length);
  }

  /** Tells whether the payload follows a header; IOException for one that is not valid. */
  static boolean isInline(ByteBuffer header) throws IOException {
    byte kind = header.get(0);
    int length = length(header);
    if (kind == INLINE && length >= 0 && length <= LARGEST_FRAME) {
      return true;
    }
    if (kind == IN_FILE && length >= 0 && length <= LARGEST_MESSAGE) {
      return false;
    }
    throw new IOException("Lockgate's Python side sent an invalid frame");
  }

  static int length(ByteBuffer header) {
    return header.getInt(1);
  }
}
