package io.lockgate.spark.enforcement;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.execution.datasources.FileIndex;
import scala.jdk.javaapi.CollectionConverters;

/** The places of local files to which links lead: reading follows every link. */
final class LinkedFiles {
  private final Map<Path, Path> folders = new HashMap<>();

  /** Tells whether files are looked for on a local file system. */
  static boolean anyLocal(FileIndex location) {
    return CollectionConverters.asJava(location.rootPaths()).stream()
        .anyMatch(each -> local(each) != null);
  }

  /**
   * The place that a file of a batch is at: the folder of its name, or the file that it links to.
   */
  static String place(org.apache.hadoop.fs.Path file) {
    Path local = local(file);
    if (local != null && Files.isSymbolicLink(local)) {
      return new LinkedFiles().real(local).toString();
    }
    return (file.getParent() == null ? file : file.getParent()).toString();
  }

  /** The path of a local file; null for any other. */
  static Path local(org.apache.hadoop.fs.Path path) {
    String scheme = path.toUri().getScheme();
    return scheme == null || scheme.equals("file") ? Path.of(path.toUri().getPath()) : null;
  }

  Path real(Path file) {
    return Files.isSymbolicLink(file) || file.getParent() == null
        ? folder(file)
        : folder(file.getParent()).resolve(file.getFileName());
  }

  Path folder(Path path) {
    return folders.computeIfAbsent(path, LinkedFiles::resolved);
  }

  private static Path resolved(Path path) {
    try {
      return path.toRealPath();
    } catch (IOException e) {
      return path.toAbsolutePath().normalize(); // it is gone: Spark says so
    }
  }

  /** Tells whether a file has hard links: it may belong to any folder. */
  static boolean hasSeveralNames(Path file) {
    try {
      return Files.isRegularFile(file, LinkOption.NOFOLLOW_LINKS)
          && (Integer) Files.getAttribute(file, "unix:nlink", LinkOption.NOFOLLOW_LINKS) > 1;
    } catch (IOException | UnsupportedOperationException e) {
      return false; // it is gone, or its file system knows no such thing
    }
  }
}
