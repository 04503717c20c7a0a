package io.lockgate.spark.enforcement;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lockgate.spark.bridge.Bridge;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.streaming.StreamingRelationV2;
import org.apache.spark.sql.catalyst.trees.TreeNodeTag;
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap$;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.DataSource;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.v2.StreamingDataSourceV2ScanRelation;
import org.apache.spark.sql.execution.streaming.runtime.StreamingRelation;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The rights to a relation of others that a plan was made under. Each batch of a stream asks for
 * them again, before Spark plans it.
 *
 * <p>For each batch Spark puts the batch's rows in the place of a relation that streams, and gives
 * them the relation's tags.
 *
 * @param relation as Python knows it
 * @param rights tells apart what users see, as Python says
 * @param source where the files of a stream come from; null for any other relation
 */
record StreamRights(ObjectNode relation, String rights, DataSource source) {
  private static final TreeNodeTag<StreamRights> TAG = new TreeNodeTag<>("lockgate.stream-rights");
  private static final Set<String> OURS = Set.of("lockgate", "system");
  private static final String BATCH = "WriteToMicroBatchDataSource";
  private static final String CONTINUOUS = "WriteToContinuousDataSource";

  /** The rights to a relation; null for one of ours, of which the store asks. */
  static StreamRights of(LogicalPlan relation, ObjectNode described, JsonNode decided) {
    if (OURS.contains(described.get("kind").asText())) {
      return null;
    }
    DataSource source = relation instanceof StreamingRelation stream ? stream.dataSource() : null;
    boolean isOfFiles = source != null && PathRights.isOfFiles(source.providingClass());
    return new StreamRights(described, decided.get("rights").asText(), isOfFiles ? source : null);
  }

  /** Notes at a relation that nothing of it is hidden, as was decided. */
  static void note(LogicalPlan relation, ObjectNode described, JsonNode decided) {
    StreamRights found = of(relation, described, decided);
    if (found != null) {
      relation.setTagValue(TAG, found);
    }
  }

  /**
   * Tells whether a plan is the files of a batch, as a source offers them. They become a part of
   * the batch's plan, and that is asked about.
   */
  static boolean isOffered(LogicalPlan plan) {
    LogicalPlan found = plan;
    while (found instanceof Project project) { // Spark pads texts of a fixed length
      found = project.child();
    }
    return found instanceof LogicalRelation relation && relation.isStreaming();
  }

  /**
   * The relation that the leaf of a batch's plan reads by another name; null for any other leaf.
   */
  static ObjectNode readBy(LogicalPlan plan) {
    boolean reads =
        plan instanceof LogicalRelation || plan instanceof StreamingDataSourceV2ScanRelation;
    StreamRights found = reads ? plan.getTagValue(TAG).getOrElse(() -> null) : null;
    return found == null ? null : found.relation;
  }

  /**
   * Refuses a stream of a relation of which something is hidden, where nothing may be read, where
   * nobody has asked before Spark made a batch of it, and where others than its rows would show it.
   */
  static void check(LogicalPlan relation, ObjectNode described, JsonNode decided) {
    boolean isRefused = decided.get("refused").asBoolean();
    boolean isPlanned =
        relation instanceof StreamingRelation || relation instanceof StreamingRelationV2;
    if (isRefused
        || !isPlanned
        || relation instanceof StreamingRelation files && tells(files, decided)) {
      LastCheck.refuse(Map.of(described, Set.of()), !isRefused, null);
    }
  }

  /**
   * Tells whether a stream shows hidden things by files. Its checkpoint has their names, and with
   * them the values of partition columns; an archive gets them whole.
   */
  private static boolean tells(StreamingRelation stream, JsonNode decided) {
    DataSource source = stream.dataSource();
    Set<String> partitions =
        new HashSet<>(CollectionConverters.asJava(source.sourceInfo().partitionColumns()));
    if (source.catalogTable().isDefined()) {
      CatalogTable table = source.catalogTable().get();
      partitions.addAll(CollectionConverters.asJava(table.partitionColumnNames()));
    }
    boolean found = !partitions.isEmpty() && !decided.get("filter").isNull();
    for (JsonNode column : decided.get("denied")) {
      found |= partitions.contains(column.asText());
    }
    for (String column : partitions) {
      found |= decided.get("masks").has(column);
    }
    return found || Statements.archives(source);
  }

  /** The folders and files that a source of files reads now: those that its pattern matches. */
  static List<String> folders(DataSource source) {
    if (source.catalogTable().isDefined()) {
      return List.of(new Path(source.catalogTable().get().location()).toString());
    }
    List<String> written = new ArrayList<>(CollectionConverters.asJava(source.paths()));
    CaseInsensitiveMap$.MODULE$.apply(source.options()).get("path").foreach(written::add);
    Set<String> found = new LinkedHashSet<>();
    for (String each : written) {
      List<String> matched = new ArrayList<>();
      PathRights.match(SparkSession.active(), each, matched, new ArrayList<>());
      found.addAll(matched);
    }
    return List.copyOf(found);
  }

  /** The question about what a batch reads: what the stream's pattern matches by now. */
  private ObjectNode asked(Collection<LogicalRelation> read) {
    ObjectNode message = Bridge.object();
    ObjectNode now = relation.deepCopy();
    message.set("relation", now);
    message.put("rights", rights);
    ArrayNode allowed = message.putArray("folders");
    ArrayNode files = message.putArray("files");
    if (source != null) {
      Set<String> folders = new LinkedHashSet<>(folders(source));
      folders.forEach(allowed::add);
      files(read, folders).forEach(files::add);
      if (now.has("paths")) {
        now.set("paths", allowed.deepCopy());
      }
    }
    return message;
  }

  /**
   * The files of a batch that no name of a file says, each by its folder: a batch has many. A link
   * is the file that it leads to.
   */
  private static Set<String> files(Collection<LogicalRelation> read, Set<String> named) {
    Set<String> found = new LinkedHashSet<>();
    for (LogicalRelation each : read) {
      if (each.relation() instanceof HadoopFsRelation files) {
        for (Path path : CollectionConverters.asJava(files.location().rootPaths())) {
          if (!named.contains(path.toString())) {
            found.add(LinkedFiles.place(path));
          }
        }
      }
    }
    return found;
  }

  /**
   * The relations of others that a batch reads, about which one question asks: those that stream,
   * and those that Spark reads again for each batch.
   */
  static final class Batch {
    private final boolean isEndless;
    private final ArrayNode streamed = Bridge.JSON.createArrayNode();

    private Batch(boolean isEndless) {
      this.isEndless = isEndless;
    }

    /** The batch that a plan is; null for any other plan. */
    static Batch of(LogicalPlan plan) {
      String name = plan.nodeName();
      boolean isBatch = name.startsWith(BATCH) || name.equals(CONTINUOUS);
      return isBatch ? new Batch(name.equals(CONTINUOUS)) : null;
    }

    /** Notes a relation; false for any other node, and where its parts are to be asked about. */
    boolean note(LogicalPlan plan) {
      Barrier barrier = Barrier.of(plan);
      StreamRights found =
          barrier != null
              ? barrier.guarded().streamed()
              : plan.getTagValue(TAG).getOrElse(() -> null);
      if (found == null) {
        return false;
      }
      List<LogicalRelation> read = new ArrayList<>();
      List<LogicalPlan> leaves = CollectionConverters.asJava(plan.collectLeaves());
      for (LogicalPlan leaf : leaves) {
        if (leaf instanceof LogicalRelation files) {
          read.add(files);
        }
      }
      boolean isOther = plan.isStreaming() && found.source == null && !read.isEmpty();
      boolean isContinuous = plan.isStreaming() && isEndless;
      if (barrier != null && (isOther || isContinuous)) {
        LastCheck.refuse(Map.of(found.relation, Set.of()), true, null);
      }
      streamed.add(found.asked(read));
      if (found.source != null) {
        read.forEach(each -> each.setTagValue(TAG, found)); // for records
      }
      boolean isWhole = leaves.size() == 1 && found.source != null && !read.isEmpty();
      return barrier != null || isWhole || plan instanceof StreamingDataSourceV2ScanRelation;
    }

    /**
     * Ends the batch if something is hidden by now of a relation that is read again, and of which
     * all was seen: it had no barrier.
     */
    void check(LogicalPlan relation, ObjectNode described, JsonNode decided) {
      StreamRights found = StreamRights.of(relation, described, decided);
      boolean isOpen = found != null && Barrier.of(relation) == null && !relation.isStreaming();
      if (isOpen && decided.get("restricted").asBoolean()) {
        streamed.add(new StreamRights(described, "those to all", null).asked(List.of()));
        ask();
      }
    }

    /** Ends the batch if its stream may no longer read what it was planned for. */
    void ask() {
      if (!streamed.isEmpty()) {
        ObjectNode request = Bridge.object();
        request.set("streamed", streamed);
        Bridge.ask("governance.batch", request);
      }
    }
  }
}
