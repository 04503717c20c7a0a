package io.lockgate.spark.files.io;

/**
 * Limits for metadata of files in memory: a few bytes can unpack to gigabytes, or claim to be as
 * many.
 *
 * <p>The twin of {@code framework/io/limits.py}; both run the vectors of {@code
 * tests/fixtures/limits.json}.
 */
public final class MetadataLimits {
  public static final String VARIABLE = "LOCKGATE_METADATA_LIMIT";

  /** A chunk of an ORC file says its length in 23 bits. */
  public static final int LARGEST_BLOCK = (1 << 23) - 1;

  private static final long MOST = 256L << 20;
  private static final long MOST_RATIO = 64;
  private static final long ALWAYS_FINE = 32L << 20;

  private MetadataLimits() {}

  /** Returns how many bytes compressed metadata of so many stored bytes may unpack to. */
  public static long mostUnpacked(long stored) {
    return mostUnpacked(stored, System.getenv(VARIABLE));
  }

  /** The same for what the variable gives, or null. */
  public static long mostUnpacked(long stored, String given) {
    return given == null || given.isEmpty()
        ? Math.min(MOST, Math.max(ALWAYS_FINE, stored * MOST_RATIO))
        : number(given);
  }

  private static long number(String given) {
    if (!given.matches("0*[1-9][0-9]{0,17}")) {
      throw new IllegalArgumentException(
          "OptionError: " + VARIABLE + " is '" + given + "': give a number of bytes");
    }
    return Long.parseLong(given);
  }

  /** Returns what is wrong with metadata that unpacks to more than it may. */
  public static String tooMuch(String what, long stored, long most) {
    return String.format(
        "%s: its %d bytes unpack to more than %d; if they are not an attack, set %s to a number of"
            + " bytes that is enough, for executors too (spark.executorEnv.%s)",
        what, stored, most, VARIABLE, VARIABLE);
  }
}
