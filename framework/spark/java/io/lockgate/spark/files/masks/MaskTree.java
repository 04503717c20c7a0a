package io.lockgate.spark.files.masks;

import java.util.List;
import org.apache.hadoop.hive.ql.exec.vector.ColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.ListColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.MapColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.MultiValuedColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.StructColumnVector;
import org.apache.orc.DataMask;
import org.apache.orc.DataMaskDescription;
import org.apache.orc.TypeDescription;
import org.apache.orc.TypeDescription.Category;

/**
 * Masks of nested columns made of masks of their leaves: nulls and lengths stay, every vector is as
 * large as it must be.
 */
final class MaskTree {
  /** Makes every value null. */
  static final DataMask NULLIFY =
      (original, masked, start, length) -> {
        masked.noNulls = false;
        masked.isRepeating = true;
        masked.isNull[0] = true;
      };

  private MaskTree() {}

  /** Masks one value that is not null. */
  @FunctionalInterface
  interface Leaf {
    void mask(ColumnVector from, ColumnVector to, int row);
  }

  /** A mask's way with each flat type; null where its values become null. */
  @FunctionalInterface
  interface Leaves {
    Leaf of(TypeDescription type);
  }

  static DataMask of(TypeDescription type, DataMask.MaskOverrides overrides, Leaves leaves) {
    Category category = type.getCategory();
    if (category == Category.STRUCT) {
      return struct(children(type, overrides, leaves));
    } else if (category == Category.LIST || category == Category.MAP) {
      return many(children(type, overrides, leaves));
    } else if (!category.isPrimitive()) {
      throw new IllegalArgumentException("values of type " + type + " have no mask but nullify");
    }
    Leaf leaf = leaves.of(type);
    return leaf == null ? NULLIFY : flat(leaf);
  }

  private static DataMask[] children(
      TypeDescription type, DataMask.MaskOverrides overrides, Leaves leaves) {
    List<TypeDescription> types = type.getChildren();
    DataMask[] masks = new DataMask[types.size()];
    for (int i = 0; i < masks.length; i++) {
      DataMaskDescription other = overrides.hasOverride(types.get(i));
      masks[i] =
          other == null
              ? of(types.get(i), overrides, leaves)
              : DataMask.Factory.build(other, types.get(i), overrides);
    }
    return masks;
  }

  /** Runs over rows; where all have one value, only the first is there. */
  private static int first(ColumnVector original, int start) {
    return original.isRepeating ? 0 : start;
  }

  private static int end(ColumnVector original, int start, int length) {
    return original.isRepeating ? 1 : start + length;
  }

  private static boolean isNull(ColumnVector vector, int row) {
    return !vector.noNulls && vector.isNull[row];
  }

  /**
   * Prepares the masked vector for the rows from {@code start}: its size, and which of them are
   * null.
   */
  private static void begin(ColumnVector original, ColumnVector masked, int start, int length) {
    if (masked.isNull.length < start + length) {
      masked.ensureSize(start + length, true);
    }
    masked.noNulls = original.noNulls;
    masked.isRepeating = original.isRepeating;
    for (int row = first(original, start); row < end(original, start, length); row++) {
      masked.isNull[row] = isNull(original, row);
    }
  }

  private static DataMask flat(Leaf leaf) {
    return (original, masked, start, length) -> {
      begin(original, masked, start, length);
      for (int row = first(original, start); row < end(original, start, length); row++) {
        if (!masked.isNull[row]) {
          leaf.mask(original, masked, row);
        }
      }
    };
  }

  private static DataMask struct(DataMask[] children) {
    return (original, masked, start, length) -> {
      begin(original, masked, start, length);
      ColumnVector[] from = ((StructColumnVector) original).fields;
      ColumnVector[] to = ((StructColumnVector) masked).fields;
      int end = end(original, start, length);
      // Behind a null struct the fields hold whatever was there before.
      for (int row = first(original, start); row < end; row++) {
        int next = row;
        while (next < end && !masked.isNull[next]) {
          next++;
        }
        for (int i = 0; next > row && i < children.length; i++) {
          children[i].maskData(from[i], to[i], row, next - row);
        }
        row = next;
      }
    };
  }

  private static DataMask many(DataMask[] children) {
    return (original, masked, start, length) -> {
      begin(original, masked, start, length);
      MultiValuedColumnVector source = (MultiValuedColumnVector) original;
      MultiValuedColumnVector target = (MultiValuedColumnVector) masked;
      target.childCount = source.childCount;
      ColumnVector[] from = inner(source);
      ColumnVector[] to = inner(target);
      for (int row = first(original, start); row < end(original, start, length); row++) {
        target.offsets[row] = source.offsets[row];
        target.lengths[row] = source.lengths[row];
        for (int i = 0; !masked.isNull[row] && i < children.length; i++) {
          // All at once, so that growing for one row does not copy the rows before over and over.
          grow(
              to[i],
              Math.max(source.childCount, (int) (source.offsets[row] + source.lengths[row])));
          children[i].maskData(
              from[i], to[i], (int) source.offsets[row], (int) source.lengths[row]);
        }
      }
    };
  }

  private static ColumnVector[] inner(MultiValuedColumnVector vector) {
    return vector instanceof MapColumnVector map
        ? new ColumnVector[] {map.keys, map.values}
        : new ColumnVector[] {((ListColumnVector) vector).child};
  }

  private static void grow(ColumnVector vector, int size) {
    if (vector.isNull.length < size) {
      vector.ensureSize(size, true);
    }
  }
}
