package io.lockgate.spark.merge.functions;

import io.lockgate.spark.merge.MergePlan;
import java.io.IOException;
import java.nio.ByteBuffer;
import org.roaringbitmap.RoaringBitmap;

/** The union of Roaring bitmaps of 32 bits, in the format that all their libraries share. */
final class Bitmaps extends ColumnFunction {
  Bitmaps(MergePlan.Column plan) {
    super(plan);
  }

  @Override
  public Object add(Object value, Object newer) {
    if (value == null || newer == null) {
      return value == null ? newer : value;
    }
    RoaringBitmap union = RoaringBitmap.or(read((byte[]) value), read((byte[]) newer));
    union.runOptimize();
    ByteBuffer bytes = ByteBuffer.allocate(union.serializedSizeInBytes());
    union.serialize(bytes);
    return bytes.array();
  }

  private RoaringBitmap read(byte[] data) {
    RoaringBitmap found = new RoaringBitmap();
    try {
      found.deserialize(ByteBuffer.wrap(data));
    } catch (IOException | RuntimeException error) {
      throw new IllegalArgumentException(
          "column '"
              + plan().name()
              + "': a value of "
              + data.length
              + " bytes is not a Roaring bitmap, which merge function 'rbm32' needs",
          error);
    }
    return found;
  }
}
