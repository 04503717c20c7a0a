package io.lockgate.spark.merge.functions;

import io.lockgate.spark.merge.MergePlan;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.roaringbitmap.longlong.Roaring64Bitmap;

/**
 * The union of Roaring bitmaps of 64 bits, in the layout of {@link Roaring64Bitmap}; Python's
 * {@code codec.roaring64} describes it.
 */
final class LongBitmaps extends ColumnFunction {
  private static final int LEAF = 4;
  private static final int[] BODIES = {4, 16, 256, 32, 14};
  // Keys have six bytes: as many nodes lie one below the other at most, then a leaf.
  private static final int DEPTH = 7;
  private static final int RUNS = 0;
  private static final int BITS = 1;
  private static final int NUMBERS = 2;
  private static final int CONTAINER_SIZE = 1 << 16;

  LongBitmaps(MergePlan.Column plan) {
    super(plan);
  }

  @Override
  public Object add(Object value, Object newer) {
    if (value == null || newer == null) {
      return value == null ? newer : value;
    }
    Roaring64Bitmap both = read((byte[]) value);
    both.or(read((byte[]) newer));
    // Containers then lie in the order of their keys, whichever value was there first.
    Roaring64Bitmap union = new Roaring64Bitmap();
    union.or(both);
    union.runOptimize();
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try {
      union.serialize(new DataOutputStream(bytes));
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
    return bytes.toByteArray();
  }

  private Roaring64Bitmap read(byte[] data) {
    Roaring64Bitmap found = new Roaring64Bitmap();
    try {
      check(ByteBuffer.wrap(data).order(ByteOrder.LITTLE_ENDIAN));
      found.deserialize(new DataInputStream(new ByteArrayInputStream(data)));
      // A key without a container shows here.
      found.getLongCardinality();
    } catch (IOException | RuntimeException error) {
      throw new IllegalArgumentException(
          "column '"
              + plan().name()
              + "': a value of "
              + data.length
              + " bytes is not a Roaring bitmap of 64 bits, which merge function 'rbm64' needs",
          error);
    }
    return found;
  }

  /**
   * Passes over a bitmap: the library would allocate whatever size its bytes say, and follow nodes
   * to any depth.
   */
  private static void check(ByteBuffer data) {
    if (data.get() == 0) {
      return;
    }
    data.getLong();
    int[] waiting = new int[DEPTH];
    waiting[0] = 1;
    for (int depth = 0; depth >= 0; ) {
      if (waiting[depth] == 0) {
        depth--;
        continue;
      }
      waiting[depth]--;
      int kind = within(data.get(), LEAF);
      int children = within(data.getShort(), 256);
      int prefix = within(data.get(), DEPTH - 1);
      pass(data, prefix + BODIES[kind]);
      if (kind != LEAF) {
        depth++;
        waiting[depth] = children;
      }
    }
    within(data.getInt(), 1);
    data.get();
    for (int left = within(data.getInt(), data.remaining()); left > 0; left--) {
      if (within(data.get(), 1) == 1) {
        passContainer(data);
      }
    }
  }

  private static void passContainer(ByteBuffer data) {
    int kind = within(data.get(), NUMBERS);
    int numbers = within(data.getInt(), CONTAINER_SIZE);
    switch (kind) {
      case RUNS -> pass(data, 4 * Short.toUnsignedInt(data.getShort()));
      case BITS -> pass(data, CONTAINER_SIZE / Byte.SIZE);
      default -> pass(data, 2 * numbers);
    }
  }

  private static int within(int number, int most) {
    if (number < 0 || number > most) {
      throw new IllegalArgumentException(number + " is not within 0 and " + most);
    }
    return number;
  }

  private static void pass(ByteBuffer data, int bytes) {
    data.position(data.position() + bytes);
  }
}
