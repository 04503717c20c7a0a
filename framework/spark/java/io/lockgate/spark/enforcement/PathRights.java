package io.lockgate.spark.enforcement;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.enforcement.parts.PlanWalk;
import io.lockgate.spark.enforcement.parts.StatementText;
import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.deploy.SparkHadoopUtil;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.UnresolvedDataSource;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.DataSource$;
import org.apache.spark.sql.execution.datasources.FileFormat;
import org.apache.spark.sql.execution.datasources.v2.FileDataSourceV2;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Refuses paths of which a user may read nothing before Spark opens files there, whose errors would
 * name them.
 *
 * <p>What the user may see of the files is decided about once they are known, by {@link Govern}.
 */
public final class PathRights extends Rule<LogicalPlan> {
  private static final Set<String> FORMATS =
      Set.of("avro", "binaryfile", "csv", "json", "orc", "parquet", "text", "xml");

  /** Options of sources that name a further file, which Spark opens and whose text errors show. */
  private static final Set<String> OPENED = Set.of("avroSchemaUrl", "rowValidationXSDPath");

  private final SparkSession session;

  /** For one session. */
  public PathRights(SparkSession session) {
    this.session = session;
  }

  /**
   * Files that a plan reads.
   *
   * @param matched what would be opened, which decides
   * @param written what the user knows of it, for the refusal
   */
  private record Named(ObjectNode matched, ObjectNode written) {}

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    if (Govern.isGoverned(session) && !PolicySession.isInside()) {
      List<Named> found = new ArrayList<>();
      new PlanWalk(each -> noted(each, found)).over(plan);
      if (!found.isEmpty()) {
        check(found, StatementText.start(plan, StatementText.LONGEST));
      }
    }
    return plan;
  }

  private static void check(List<Named> found, String statement) {
    ObjectNode request = Bridge.object().put("statement", statement);
    ArrayNode relations = request.putArray("relations");
    found.forEach(each -> relations.add(each.matched()));
    request.putArray("nodes");
    request.putArray("settings");
    request.putArray("guarded");
    JsonNode answers = Bridge.ask("governance.decide", request).get("relations");
    Map<ObjectNode, Set<String>> refused = new LinkedHashMap<>();
    for (int i = 0; i < found.size(); i++) {
      if (answers.get(i).get("refused").asBoolean()) {
        refused.put(found.get(i).written(), Set.of());
      }
    }
    if (!refused.isEmpty()) {
      LastCheck.refuse(
          refused, false, statement, "Reading files that these paths match is not permitted");
    }
  }

  private LogicalPlan noted(LogicalPlan plan, List<Named> found) {
    Set<String> paths = new LinkedHashSet<>();
    if (plan instanceof UnresolvedDataSource source && isOfFiles(source.format())) {
      paths.addAll(CollectionConverters.asJava(source.paths()));
      source.options().get("path").foreach(paths::add);
      source.options().get("paths").foreach(text -> paths.addAll(listed(text)));
      OPENED.forEach(option -> source.options().get(option).foreach(paths::add));
    } else if (plan instanceof UnresolvedRelation relation) {
      List<String> name = CollectionConverters.asJava(relation.multipartIdentifier());
      if (name.size() == 2
          && mayBeFormat(name.get(0))
          && isOfFiles(name.get(0))
          && !isTable(name)) {
        paths.add(name.get(1));
      }
    }
    if (!paths.isEmpty()) {
      List<String> matched = new ArrayList<>();
      List<String> written = new ArrayList<>();
      paths.forEach(each -> match(session, each, matched, written));
      found.add(new Named(relation(matched), relation(written)));
    }
    return null;
  }

  /** Sources of Spark's newer kind take a list of paths in JSON as an option. */
  private static List<String> listed(String text) {
    try {
      return List.of(Bridge.JSON.readValue(text, String[].class));
    } catch (IOException e) {
      return List.of(); // Spark says that it is none
    }
  }

  private static ObjectNode relation(List<String> paths) {
    return Relations.ofPaths(paths).set("columns", Bridge.JSON.createArrayNode());
  }

  private static boolean mayBeFormat(String name) {
    return name.contains(".") || FORMATS.contains(name.toLowerCase(Locale.ROOT));
  }

  private boolean isOfFiles(String format) {
    try {
      return isOfFiles(DataSource$.MODULE$.lookupDataSource(format, session.sessionState().conf()));
    } catch (Exception e) {
      return false; // Spark says that there is no such source
    }
  }

  /** Tells whether a source finds its rows in the files of its paths, and nowhere else. */
  static boolean isOfFiles(Class<?> source) {
    return FileFormat.class.isAssignableFrom(source)
        || FileDataSourceV2.class.isAssignableFrom(source);
  }

  /** Spark prefers a table of the name. */
  private boolean isTable(List<String> name) {
    return session.catalog().tableExists("`" + String.join("`.`", name) + "`");
  }

  /**
   * Finds the paths that a pattern matches, so that a user may read by one what that user may read.
   * A refusal names the folder above its first sign. If nothing matches, this folder decides, since
   * that tells too.
   */
  static void match(SparkSession session, String text, List<String> matched, List<String> written) {
    Path path = new Path(text);
    List<String> found = new ArrayList<>();
    SparkHadoopUtil hadoop = SparkHadoopUtil.get();
    try {
      FileSystem files = path.getFileSystem(session.sessionState().newHadoopConf());
      path = path.makeQualified(files.getUri(), files.getWorkingDirectory());
      if (hadoop.isGlobPath(path)) {
        CollectionConverters.asJava(hadoop.globPath(files, path))
            .forEach(each -> found.add(each.toString()));
      }
    } catch (IOException e) {
      found.clear(); // it is asked about as it is written
    }
    while (hadoop.isGlobPath(path) && path.getParent() != null) {
      path = path.getParent();
    }
    matched.addAll(found.isEmpty() ? List.of(path.toString()) : found);
    written.add(path.toString());
  }
}
