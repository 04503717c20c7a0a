package io.lockgate.spark.lookup;

import com.fasterxml.jackson.databind.JsonNode;
import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.bridge.Failure;
import java.io.IOException;
import java.nio.file.Path;

/**
 * The versions of a cache's files and rows that this JVM reads; Python's are in {@code version}.
 */
final class CacheVersions {
  /** The version of the files of a cache. */
  static final int CACHE_FORMAT = 3;

  /** The version of the bytes of rows and keys. */
  static final int ROW_CODEC = 1;

  private CacheVersions() {}

  /** Checks that Python wrote a cache in the versions that are read here. */
  static void check(Path cache) throws IOException {
    JsonNode layout = Bridge.JSON.readTree(cache.resolve("LAYOUT.json").toFile());
    // A cache of another version may have neither.
    JsonNode format = layout.get("cache_format");
    JsonNode codec = layout.get("row_codec");
    if (!is(format, CACHE_FORMAT) || !is(codec, ROW_CODEC)) {
      throw Failure.inTask(
          "VersionMismatchError: the lookup cache "
              + cache
              + " has format "
              + shown(format)
              + " and row codec "
              + shown(codec)
              + ", this Lockgate reads "
              + CACHE_FORMAT
              + " and "
              + ROW_CODEC
              + ": install one version on driver and executors",
          null);
    }
  }

  private static boolean is(JsonNode found, int version) {
    return found != null && found.isInt() && found.intValue() == version;
  }

  private static String shown(JsonNode version) {
    return version == null ? "none" : version.asText();
  }
}
