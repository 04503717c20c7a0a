package io.lockgate.spark.lineage;

import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Expression;

/**
 * The part of a value that functions leave: all, nothing that shows it, or something in between.
 */
final class Functions {
  /** By name, for some of them are not in every version of Spark. */
  private static final Set<String> KEEP =
      Set.of(
          "AssertNotNull",
          "KnownFloatingPointNormalized",
          "KnownNotNull",
          "KnownNullable",
          "NormalizeNaNAndZero",
          "PreciseTimestampConversion",
          "PromotePrecision",
          "TempResolvedColumn",
          "UpCast");

  private static final Set<String> MASK =
      Set.of(
          "AesEncrypt",
          "BitLength",
          "Crc32",
          "HiveHash",
          "IsNaN",
          "IsNotNull",
          "IsNull",
          "Length",
          "Mask",
          "Md5",
          "Murmur3Hash",
          "OctetLength",
          "Sha1",
          "Sha2",
          "XxHash64");

  private Functions() {}

  /** The kind of the step that an expression is. */
  static int step(Expression expression) {
    String name = expression.getClass().getSimpleName();
    if (KEEP.contains(name) || isLossless(expression)) {
      return Dependencies.IDENTITY;
    }
    return MASK.contains(name)
        ? Dependencies.masked(Dependencies.TRANSFORMATION)
        : Dependencies.TRANSFORMATION;
  }

  private static boolean isLossless(Expression expression) {
    return expression instanceof Cast cast
        && Cast.canUpCast(cast.child().dataType(), cast.dataType());
  }
}
