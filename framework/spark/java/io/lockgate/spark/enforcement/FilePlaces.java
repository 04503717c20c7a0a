package io.lockgate.spark.enforcement;

import io.lockgate.spark.bridge.Failure;
import java.io.Serializable;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.Partition;
import org.apache.spark.paths.SparkPath;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FilePartition;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Where local files really are, as was looked up before a right to read them was asked for.
 *
 * @param roots the folders and files that are read, each by its path
 * @param leaving the places outside of them to which links below lead
 * @param hasHardLinks whether some of the files have several names
 */
record FilePlaces(Map<String, String> roots, Set<String> leaving, boolean hasHardLinks)
    implements Serializable {
  private static final long serialVersionUID = 1L;

  static FilePlaces of(FileIndex location) {
    LinkedFiles links = new LinkedFiles();
    Map<String, String> roots = new LinkedHashMap<>();
    for (org.apache.hadoop.fs.Path root : CollectionConverters.asJava(location.rootPaths())) {
      Path local = LinkedFiles.local(root);
      if (local != null) {
        roots.put(local.toString(), links.folder(local).toString());
      }
    }
    Set<String> allowed = new LinkedHashSet<>(roots.values());
    Set<String> leaving = new LinkedHashSet<>();
    boolean hasHardLinks = false;
    for (String text : roots.isEmpty() ? new String[0] : location.inputFiles()) {
      Path local = LinkedFiles.local(SparkPath.fromUrlString(text).toPath());
      Path real = local == null ? null : links.real(local);
      if (real != null && !isWithin(real, allowed)) {
        leaving.add(real.toString());
      }
      hasHardLinks |= real != null && LinkedFiles.hasSeveralNames(real);
    }
    return new FilePlaces(roots, leaving, hasHardLinks);
  }

  private static boolean isWithin(Path real, Set<String> allowed) {
    for (Path each = real; each != null; each = each.getParent()) {
      if (allowed.contains(each.toString())) {
        return true;
      }
    }
    return false;
  }

  /**
   * Ends a task whose files are elsewhere by now. Of Spark's newer kind of sources it knows the
   * roots alone.
   */
  void check(Partition split) {
    LinkedFiles links = new LinkedFiles();
    if (!(split instanceof FilePartition files)) {
      roots.forEach((root, real) -> check(links.folder(Path.of(root)), Set.of(real)));
      return;
    }
    Set<String> allowed = new LinkedHashSet<>(roots.values());
    allowed.addAll(leaving);
    for (PartitionedFile each : files.files()) {
      Path local = LinkedFiles.local(each.toPath());
      if (local != null) {
        check(links.real(local), allowed);
      }
    }
  }

  private void check(Path real, Set<String> allowed) {
    if (!isWithin(real, allowed) || !hasHardLinks && LinkedFiles.hasSeveralNames(real)) {
      throw Failure.ofRow(
          "AccessDeniedError: a file or folder was exchanged, or got another name, since it was"
              + " decided that its reader may read it: run the query again, from a new DataFrame");
    }
  }

  /** The places for a question, by the paths that {@code named} has: real ones of local files. */
  List<String> real(List<?> named) {
    return named.stream()
        .map(
            each -> {
              Path local = LinkedFiles.local((org.apache.hadoop.fs.Path) each);
              return local == null ? each.toString() : roots.get(local.toString());
            })
        .toList();
  }
}
