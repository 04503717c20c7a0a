package io.lockgate.spark.enforcement;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lockgate.spark.bridge.Bridge;
import java.util.List;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.FileSourceScanLike;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.v2.BatchScanExec;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.execution.datasources.v2.FileScan;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Files of the driver's own file systems, where links may come and folders may be exchanged after a
 * query was planned.
 *
 * @param location where the files are
 * @param columns theirs, as Python knows them
 * @param paths the relation that the query names by its paths; null for a table, and for what a
 *     policy itself reads
 * @param rights those that the relation was planned under; null if nothing of it was hidden
 */
record LocalFiles(FileIndex location, ArrayNode columns, ObjectNode paths, String rights) {
  /** The files that a scan reads, within a barrier or not; null for anything else. */
  static LocalFiles of(SparkPlan plan, Barrier barrier) {
    LogicalPlan link = plan.logicalLink().getOrElse(() -> null);
    if (plan instanceof FileSourceScanLike scan) {
      boolean isTable = scan.tableIdentifier().isDefined();
      return streams(link)
          ? null
          : of(scan.relation().location(), scan.relation().schema(), isTable, barrier);
    } else if (plan instanceof BatchScanExec batch && batch.scan() instanceof FileScan files) {
      return of(files.fileIndex(), files.readSchema(), isNamed(link, files), barrier);
    }
    return null;
  }

  private static LocalFiles of(
      FileIndex location, StructType schema, boolean isTable, Barrier barrier) {
    List<?> roots = CollectionConverters.asJava(location.rootPaths());
    if (!LinkedFiles.anyLocal(location)) {
      return null;
    }
    ArrayNode columns = Bridge.JSON.createArrayNode();
    for (StructField each : schema.fields()) {
      columns.addObject().put("name", each.name()).put("type", each.dataType().sql());
    }
    ObjectNode paths = Relations.ofPaths(roots).set("columns", columns);
    if (barrier == null) {
      return new LocalFiles(location, columns, isTable ? null : paths, null);
    }
    ObjectNode guarded = barrier.guarded().relation();
    return paths.get("paths").equals(guarded.get("paths"))
        ? new LocalFiles(location, columns, guarded, barrier.guarded().rights())
        : new LocalFiles(location, columns, null, null);
  }

  /** A stream asks for each batch whether it may read the files. */
  private static boolean streams(LogicalPlan link) {
    return link != null
        && CollectionConverters.asJava(link.collectLeaves()).stream()
            .anyMatch(each -> each instanceof LogicalRelation && each.isStreaming());
  }

  private static boolean isNamed(LogicalPlan link, FileScan scan) {
    return link != null
        && CollectionConverters.asJava(link.collectLeaves()).stream()
            .anyMatch(
                each ->
                    each instanceof DataSourceV2ScanRelation found
                        && found.scan() == scan
                        && found.relation().catalog().isDefined());
  }

  /**
   * Ends a query that may not read the files that its paths, and links below them, lead to now;
   * answers where these are.
   */
  FilePlaces checked() {
    FilePlaces places = FilePlaces.of(location);
    if (paths != null || !places.leaving().isEmpty()) {
      ObjectNode request = Bridge.object().put("rights", rights);
      request.set("planned", paths == null ? null : Relations.ofPaths(real(places)));
      request.set("linked", null);
      if (paths != null) {
        ((ObjectNode) request.get("planned")).set("columns", paths.get("columns"));
      }
      if (!places.leaving().isEmpty()) {
        List<String> leaving = List.copyOf(places.leaving());
        request.set("linked", Relations.ofPaths(leaving).set("columns", columns));
      }
      Bridge.ask("governance.files", request);
    }
    return places;
  }

  private List<String> real(FilePlaces places) {
    return places.real(CollectionConverters.asJava(location.rootPaths()));
  }
}
