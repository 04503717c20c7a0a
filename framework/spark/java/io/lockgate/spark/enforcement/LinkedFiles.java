package io.lockgate.spark.enforcement;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.paths.SparkPath;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import scala.jdk.javaapi.CollectionConverters;

/** Local files of a relation that links take out of its folders: reading follows every link. */
final class LinkedFiles {
  private final Map<Path, Path> folders = new HashMap<>();

  private LinkedFiles() {}

  /** The places that files of a relation really are at, without those below its folders. */
  static List<String> leaving(HadoopFsRelation relation) {
    LinkedFiles links = new LinkedFiles();
    List<Path> roots = new ArrayList<>();
    for (org.apache.hadoop.fs.Path root :
        CollectionConverters.asJava(relation.location().rootPaths())) {
      if (isLocal(root)) {
        roots.add(links.folder(Path.of(root.toUri().getPath())));
      }
    }
    Set<String> found = new LinkedHashSet<>();
    for (String text : roots.isEmpty() ? new String[0] : relation.location().inputFiles()) {
      org.apache.hadoop.fs.Path file = SparkPath.fromUrlString(text).toPath();
      Path real = isLocal(file) ? links.real(Path.of(file.toUri().getPath())) : null;
      if (real != null && roots.stream().noneMatch(real::startsWith)) {
        found.add(real.toString());
      }
    }
    return List.copyOf(found);
  }

  /**
   * The place that a file of a batch is at: the folder of its name, or the file that it links to.
   */
  static String place(org.apache.hadoop.fs.Path file) {
    Path local = isLocal(file) ? Path.of(file.toUri().getPath()) : null;
    if (local != null && Files.isSymbolicLink(local)) {
      return new LinkedFiles().real(local).toString();
    }
    return (file.getParent() == null ? file : file.getParent()).toString();
  }

  private static boolean isLocal(org.apache.hadoop.fs.Path path) {
    String scheme = path.toUri().getScheme();
    return scheme == null || scheme.equals("file");
  }

  private Path real(Path file) {
    return Files.isSymbolicLink(file) || file.getParent() == null
        ? folder(file)
        : folder(file.getParent()).resolve(file.getFileName());
  }

  private Path folder(Path path) {
    return folders.computeIfAbsent(path, LinkedFiles::resolved);
  }

  private static Path resolved(Path path) {
    try {
      return path.toRealPath();
    } catch (IOException e) {
      return path.toAbsolutePath().normalize(); // it is gone: Spark says so
    }
  }
}
