package io.lockgate.spark.lookup;

import org.apache.spark.unsafe.Platform;

/**
 * The place where the value of a key was found: in an array of bytes, or in mapped memory, where
 * the base is null.
 */
final class Value {
  Object base;
  long offset;

  void set(Object newBase, long newOffset) {
    base = newBase;
    offset = newOffset;
  }

  long word(long index) {
    return Platform.getLong(base, offset + index * Long.BYTES);
  }
}
