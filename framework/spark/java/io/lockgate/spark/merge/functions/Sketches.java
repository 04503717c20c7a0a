package io.lockgate.spark.merge.functions;

import io.lockgate.spark.merge.MergePlan;
import org.apache.datasketches.hll.HllSketch;
import org.apache.datasketches.hll.TgtHllType;
import org.apache.datasketches.memory.Memory;
import org.apache.datasketches.theta.SetOperation;
import org.apache.datasketches.theta.Sketch;
import org.apache.datasketches.theta.Union;

/** The union of sketches of Apache DataSketches, in the layout that all its languages share. */
final class Sketches extends ColumnFunction {
  private final boolean isTheta;

  Sketches(MergePlan.Column plan) {
    super(plan);
    this.isTheta = plan.function().equals("theta_sketch");
  }

  @Override
  public Object add(Object value, Object newer) {
    if (value == null || newer == null) {
      return value == null ? newer : value;
    }
    return isTheta ? theta((byte[]) value, (byte[]) newer) : hll((byte[]) value, (byte[]) newer);
  }

  private byte[] hll(byte[] value, byte[] newer) {
    HllSketch added = hllSketch(newer);
    // As precise as the newer one, as in Paimon.
    org.apache.datasketches.hll.Union union =
        new org.apache.datasketches.hll.Union(added.getLgConfigK());
    union.update(added);
    union.update(hllSketch(value));
    return union.getResult(TgtHllType.HLL_4).toCompactByteArray();
  }

  private HllSketch hllSketch(byte[] data) {
    try {
      return HllSketch.heapify(data);
    } catch (RuntimeException error) {
      throw no("an HLL sketch", data, error);
    }
  }

  private byte[] theta(byte[] value, byte[] newer) {
    Union union = SetOperation.builder().buildUnion();
    for (byte[] data : new byte[][] {value, newer}) {
      if (data.length < leastTheta(data)) {
        throw no("a theta sketch", data, null);
      }
      try {
        // The union of memory passes over what is too short for a sketch.
        union.union(Sketch.heapify(Memory.wrap(data)));
      } catch (RuntimeException error) {
        throw no("a theta sketch", data, error);
      }
    }
    return union.getResult().toByteArray();
  }

  /** The bytes that a theta sketch has at least by its preamble, past which the library reads. */
  private static int leastTheta(byte[] data) {
    if (data.length < Long.BYTES) {
      return Long.BYTES;
    }
    int preamble = data[0] & 0x3F;
    boolean isEmpty = (data[5] & 4) != 0;
    return Long.BYTES * (preamble == 1 && !isEmpty ? 2 : Math.max(1, preamble));
  }

  private IllegalArgumentException no(String what, byte[] data, RuntimeException error) {
    return new IllegalArgumentException(
        "column '"
            + plan().name()
            + "': a value of "
            + data.length
            + " bytes is not "
            + what
            + ", which merge function '"
            + plan().function()
            + "' needs",
        error);
  }
}
