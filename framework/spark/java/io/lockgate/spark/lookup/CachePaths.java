package io.lockgate.spark.lookup;

import io.lockgate.spark.bridge.Failure;
import io.lockgate.spark.files.io.PrivateFolders;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

/** Paths of caches on a host, and their owners, as in {@code lookup/spec/cache_paths.py}. */
final class CachePaths {
  private static final String ROOT_VARIABLE = "LOCKGATE_LOOKUP_CACHE_DIR";

  /**
   * Folders in which Python's {@code tempfile} looks for one for temporary files, in this order.
   */
  private static final List<String> TEMPORARY_VARIABLES = List.of("TMPDIR", "TEMP", "TMP");

  private static final List<String> TEMPORARY_FOLDERS = List.of("/tmp", "/var/tmp", "/usr/tmp");

  /** Java's word for the home of a user without one. */
  private static final String NO_HOME = "?";

  private static final Path LOCKS = Path.of("/proc/locks");

  private CachePaths() {}

  /** The folder, on this host, of the cache that a plan names by its location. */
  static Path local(String location) {
    return local(location, System.getenv());
  }

  static Path local(String location, Map<String, String> environment) {
    int slash = location.lastIndexOf('/');
    String configured = slash > 0 ? location.substring(0, slash) : slash == 0 ? "/" : "";
    return root(configured, environment).resolve(location.substring(slash + 1));
  }

  private static Path root(String configured, Map<String, String> environment) {
    String own = environment.getOrDefault(ROOT_VARIABLE, "");
    String given = own.isEmpty() ? configured : own;
    return given.isEmpty()
        ? temporary(environment).resolve("lockgate-lookup-" + PrivateFolders.uid())
        : absolute(withHome(given, environment));
  }

  /** A path without the names that Python's {@code Path} leaves out. */
  private static Path absolute(String given) {
    Path path = Path.of(given).toAbsolutePath();
    Path kept = path.getRoot();
    for (Path name : path) {
      kept = name.toString().equals(".") ? kept : kept.resolve(name);
    }
    return kept;
  }

  private static String withHome(String folder, Map<String, String> environment) {
    if (!folder.startsWith("~")) {
      return folder;
    }
    if (folder.length() > 1 && folder.charAt(1) != '/') {
      throw Failure.inTask(
          "LookupCacheError: the folder of lookup caches '"
              + folder
              + "' begins with the home of another user: write the whole path in lookup.cache-dir,"
              + " or in "
              + ROOT_VARIABLE,
          null);
    }
    return home(environment) + folder.substring(1);
  }

  private static String home(Map<String, String> environment) {
    String own = environment.getOrDefault("HOME", "");
    String home = own.isEmpty() ? System.getProperty("user.home") : own;
    if (home.equals(NO_HOME)) {
      throw Failure.inTask(
          "LookupCacheError: user "
              + PrivateFolders.uid()
              + " has no home for the folder of lookup caches: set HOME, or write the whole path in"
              + " lookup.cache-dir or "
              + ROOT_VARIABLE,
          null);
    }
    return home;
  }

  private static Path temporary(Map<String, String> environment) {
    Stream<String> named =
        TEMPORARY_VARIABLES.stream()
            .map(environment::get)
            .filter(each -> each != null && !each.isEmpty());
    return Stream.concat(named, TEMPORARY_FOLDERS.stream())
        .map(each -> Path.of(each).toAbsolutePath().normalize())
        .filter(each -> Files.isDirectory(each) && Files.isWritable(each))
        .findFirst()
        .orElseGet(() -> Path.of("").toAbsolutePath());
  }

  /**
   * Tells whether a process holds the right to write to a cache. Java's locks are of another kind,
   * so the system's list is read.
   */
  static boolean hasOwner(Path cache) {
    try {
      String inode = ":" + Files.getAttribute(cache.resolve("LOCK"), "unix:ino") + " ";
      return Files.readAllLines(LOCKS).stream()
          .anyMatch(line -> line.contains("FLOCK") && line.contains(inode));
    } catch (IOException e) {
      return !Files.exists(LOCKS) && Files.exists(cache.resolve("LOCK"));
    }
  }
}
