package io.lockgate.spark.files;

import java.io.IOException;
import java.util.HexFormat;

/** Runs the vectors of deletion vectors. */
public final class VectorTwins {
  private VectorTwins() {}

  /**
   * Tells whether a vector deletes exactly the positions given; the message of the error if it is
   * damaged.
   */
  public static String decode(String hex, long rows, java.util.List<? extends Number> positions) {
    try {
      DeletedRows found = DeletedRows.decode(HexFormat.of().parseHex(hex), rows, "the vector");
      boolean all = positions.stream().allMatch(row -> found.contains(row.longValue()));
      return all && found.cardinality() == positions.size() ? "equal" : "other rows";
    } catch (IOException damage) {
      return damage.getMessage();
    }
  }

  /** Which rows of a part of a file are left, by the numbers of the rows in the file. */
  public static String kept(String hex, long rows, long first, int count) throws IOException {
    int[] left = new int[count];
    int kept =
        DeletedRows.decode(HexFormat.of().parseHex(hex), rows, "the vector")
            .keep(first, count, left);
    return java.util.Arrays.toString(java.util.Arrays.copyOf(left, kept));
  }
}
