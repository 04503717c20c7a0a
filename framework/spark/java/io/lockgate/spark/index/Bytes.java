package io.lockgate.spark.index;

import java.util.Arrays;

/** Bytes that grow; numbers are written lowest byte first. */
final class Bytes {
  private byte[] data;
  private int size;

  Bytes(int capacity) {
    this.data = new byte[capacity];
  }

  int size() {
    return size;
  }

  byte[] array() {
    return data;
  }

  byte[] toByteArray() {
    return Arrays.copyOf(data, size);
  }

  void clear() {
    size = 0;
  }

  private void reserve(int count) {
    if (data.length - size < count) {
      data = Arrays.copyOf(data, Math.max(2 * data.length, size + count));
    }
  }

  void put(int value) {
    reserve(1);
    data[size++] = (byte) value;
  }

  void putInt(int value) {
    put(value, Integer.BYTES);
  }

  void putLong(long value) {
    put(value, Long.BYTES);
  }

  /** Writes the lower bytes of a number. */
  void put(long value, int bytes) {
    reserve(bytes);
    for (int i = 0; i < bytes; i++) {
      data[size++] = (byte) (value >>> (8 * i));
    }
  }

  void put(byte[] values, int length) {
    reserve(length);
    System.arraycopy(values, 0, data, size, length);
    size += length;
  }
}
