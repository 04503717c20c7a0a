package io.lockgate.spark.lookup;

import io.lockgate.spark.io.PrivateFolders;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;

/** The places of caches on a host, and their owners; as the Python module {@code places} has it. */
final class CachePlaces {
  private static final String ROOT_VARIABLE = "LOCKGATE_LOOKUP_CACHE_DIR";

  /**
   * Folders in which Python's {@code tempfile} looks for one for temporary files, in this order.
   */
  private static final List<String> TEMPORARY_VARIABLES = List.of("TMPDIR", "TEMP", "TMP");

  private static final List<String> TEMPORARY_FOLDERS = List.of("/tmp", "/var/tmp", "/usr/tmp");
  private static final Path LOCKS = Path.of("/proc/locks");

  private CachePlaces() {}

  /** The folder, on this host, of the cache that a plan names by its place. */
  static Path local(String location) {
    int slash = location.lastIndexOf('/');
    String configured = slash > 0 ? location.substring(0, slash) : slash == 0 ? "/" : "";
    return root(configured).resolve(location.substring(slash + 1));
  }

  private static Path root(String configured) {
    String own = System.getenv(ROOT_VARIABLE);
    String given = own == null || own.isEmpty() ? configured : own;
    if (given.isEmpty()) {
      return temporary().resolve("lockgate-lookup-" + PrivateFolders.uid());
    }
    if (given.equals("~") || given.startsWith("~/")) {
      given = home() + given.substring(1);
    }
    return Path.of(given).toAbsolutePath();
  }

  private static String home() {
    String own = System.getenv("HOME");
    return own == null || own.isEmpty() ? System.getProperty("user.home") : own;
  }

  private static Path temporary() {
    Stream<String> named =
        TEMPORARY_VARIABLES.stream()
            .map(System::getenv)
            .filter(each -> each != null && !each.isEmpty());
    return Stream.concat(named, TEMPORARY_FOLDERS.stream())
        .map(each -> Path.of(each).toAbsolutePath())
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
