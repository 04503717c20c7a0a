package io.lockgate.spark.rules;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.fasterxml.jackson.databind.node.POJONode;
import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.catalog.LockgateTable;
import io.lockgate.spark.catalog.StagedReplacement;
import io.lockgate.spark.lineage.LineageListener;
import io.lockgate.spark.lineage.Sources;
import io.lockgate.spark.messages.FilesFlowRequest;
import io.lockgate.spark.messages.FlowAnswer;
import io.lockgate.spark.messages.FlowRequest;
import io.lockgate.spark.messages.MarkedColumn;
import io.lockgate.spark.messages.Messages;
import io.lockgate.spark.messages.Operations;
import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import org.apache.spark.sql.catalyst.QueryPlanningTracker;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.write.RowLevelOperationTable;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SQLExecution;
import org.apache.spark.sql.execution.command.DataWritingCommand;
import org.apache.spark.sql.execution.datasources.InsertIntoDataSourceCommand;
import org.apache.spark.sql.execution.datasources.InsertIntoHadoopFsRelationCommand;
import org.apache.spark.sql.execution.datasources.SaveIntoDataSourceCommand;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.WriteToDataSourceV2;
import org.apache.spark.sql.execution.streaming.Sink;
import org.apache.spark.sql.execution.streaming.runtime.IncrementalExecution;
import org.apache.spark.sql.execution.streaming.runtime.StreamExecution;
import org.apache.spark.sql.execution.streaming.sources.ForeachBatchSink;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Reports each query that writes values of encrypted columns to Python, which decides what happens.
 */
public final class FlowCheck {
  private static final String ENCRYPT = "orc.encrypt";

  private FlowCheck() {}

  /** Look at one writing command; others are none of ours. */
  @SuppressWarnings("deprecation") // streams still write by WriteToDataSourceV2
  public static void look(LogicalPlan plan) {
    if (plan instanceof V2WriteCommand write
        && write.table() instanceof DataSourceV2Relation written) {
      tell(write.query(), written.table(), false);
    } else if (plan instanceof WriteToDataSourceV2 stream) {
      batch(stream);
    } else if (plan instanceof InsertIntoHadoopFsRelationCommand files) {
      tell(
          files.query(),
          files,
          files.outputPath().toString(),
          FileSinks.options(files.fileFormat(), files.options()).get(ENCRYPT));
    } else if (plan instanceof DataWritingCommand command) {
      tell(command.query(), command);
    } else if (plan instanceof SaveIntoDataSourceCommand save) {
      tell(save.query(), save.dataSource());
    } else if (plan instanceof InsertIntoDataSourceCommand insert) {
      tell(insert.query(), insert.logicalRelation().relation());
    } else if (queryId() != null) {
      batch(plan);
    }
  }

  /**
   * Of a stream's batch for a table, or for a sink such as Kafka or the console, of which the plan
   * has no name.
   */
  @SuppressWarnings("deprecation") // streams still write by WriteToDataSourceV2
  private static void batch(WriteToDataSourceV2 write) {
    StreamExecution stream = stream();
    if (write.relation().isDefined()) {
      tell(write.query(), write.relation().get().table(), true);
    } else if (stream != null) {
      tell(write.query(), stream.sink(), stream.sink().name(), null);
    }
  }

  /**
   * Of a stream's batch for one of Spark's older sinks, which plans do not show: it is the plan
   * that is optimized before any other of the batch. Its subqueries come earlier, and may be taken
   * for it until it comes.
   */
  private static void batch(LogicalPlan plan) {
    StreamExecution stream = stream();
    IncrementalExecution batch = stream == null ? null : stream.lastExecution();
    if (batch != null
        && stream.sink() instanceof Sink sink
        && !isOptimized(batch)
        && names(plan).equals(names(batch.analyzed()))) {
      tell(plan, sink, batch.analyzed());
    }
  }

  /**
   * The plan that is being executed as it was analysed, null if there is none: the optimizer drops
   * what programs declare of columns that it computes together with others.
   */
  private static LogicalPlan analysed() {
    StreamExecution stream = stream();
    IncrementalExecution batch = stream == null ? null : stream.lastExecution();
    if (batch != null && !isOptimized(batch)) {
      return batch.analyzed();
    }
    String id =
        SparkSession.active().sparkContext().getLocalProperty(SQLExecution.EXECUTION_ID_KEY());
    QueryExecution execution =
        id == null ? null : SQLExecution.getQueryExecution(Long.parseLong(id));
    return execution == null ? null : execution.analyzed();
  }

  private static boolean isOptimized(IncrementalExecution batch) {
    return batch.tracker().phases().contains(QueryPlanningTracker.OPTIMIZATION());
  }

  private static List<String> names(LogicalPlan plan) {
    return CollectionConverters.asJava(plan.output()).stream().map(Attribute::name).toList();
  }

  private static StreamExecution stream() {
    String id = queryId();
    return id == null
        ? null
        : SparkSession.active().sharedState().activeStreamingQueries().get(UUID.fromString(id));
  }

  private static String queryId() {
    return SparkSession.active().sparkContext().getLocalProperty("sql.streaming.queryId");
  }

  private static void tell(LogicalPlan query, Table written, boolean stream) {
    Table inner = written instanceof RowLevelOperationTable rows ? rows.table() : written;
    if (!(inner instanceof LockgateTable table)) {
      tell(query, inner, inner.name(), null);
      return;
    }
    Map<String, Set<JsonNode>> sources = ColumnFlow.of(query, analysed());
    Map<String, Set<JsonNode>> found = ColumnFlow.encrypted(sources);
    if (!found.isEmpty()) {
      boolean isMade = inner instanceof StagedReplacement;
      FlowAnswer reply =
          Bridge.ask(
              Operations.WRITE_FLOW,
              new FlowRequest(table.request(), marked(found), queryId(), isMade, stream));
      if (reply.schemaId() != null) {
        table.writtenUnder(reply.schemaId());
      }
    }
    ObjectNode ask = (ObjectNode) Messages.tree(table.request());
    ask.put("target", inner instanceof StagedReplacement staged ? staged.named() : null);
    tellLineage("lineage.flow", ask, sources);
  }

  /** Reports columns that are not encrypted where they are read: the lineage may know more. */
  private static void tellLineage(
      String operation, ObjectNode ask, Map<String, Set<JsonNode>> sources) {
    if (LineageListener.isOff(SparkSession.active())) {
      return;
    }
    Map<ObjectNode, Integer> inputs = new LinkedHashMap<>();
    ObjectNode columns = ask.putObject("columns");
    sources.forEach(
        (name, all) -> {
          ArrayNode found = Bridge.JSON.createArrayNode();
          for (JsonNode each : all) {
            if (each instanceof POJONode node && node.getPojo() instanceof ColumnFlow.Origin from) {
              int number = inputs.computeIfAbsent(from.dataset(), key -> inputs.size());
              found.addArray().add(number).add(from.column());
            }
          }
          if (!found.isEmpty()) {
            columns.set(Sources.quoted(name), found);
          }
        });
    if (!columns.isEmpty()) {
      inputs.keySet().forEach(ask.putArray("inputs")::add);
      Bridge.ask(operation, ask.put("query", queryId()));
    }
  }

  private static void tell(LogicalPlan query, Sink sink, LogicalPlan analyzed) {
    if (sink instanceof ForeachBatchSink) {
      ColumnFlow.note(sink, query, analyzed); // what becomes of the batch, the queries on it show
    } else {
      tell(query, sink, sink.toString(), SinkOptions.of(sink).get(ENCRYPT));
    }
  }

  private static void tell(LogicalPlan query, Object sink) {
    tell(query, sink, sink.getClass().getSimpleName(), null);
  }

  /**
   * Reports a flow into files or another sink; {@code encrypt} is the option by which ORC encrypts
   * columns of files.
   */
  private static void tell(LogicalPlan query, Object sink, String path, String encrypt) {
    Map<String, Set<JsonNode>> sources = ColumnFlow.of(query, analysed());
    Map<String, Set<JsonNode>> found = ColumnFlow.encrypted(sources);
    if (!found.isEmpty()) {
      String name = sink.getClass().getName();
      Bridge.ask(
          Operations.WRITE_FLOW_TO_FILES,
          new FilesFlowRequest(name, path, encrypt, marked(found), queryId()));
    }
    tellLineage(
        "lineage.flow_to_files",
        Bridge.object().put("path", path).put("encrypt", encrypt),
        sources);
  }

  /** The marks of encrypted columns, which metadata of columns hold in the words of Python. */
  private static Map<String, List<MarkedColumn>> marked(Map<String, Set<JsonNode>> found) {
    Map<String, List<MarkedColumn>> columns = new LinkedHashMap<>();
    found.forEach(
        (name, marks) -> {
          List<MarkedColumn> all = new ArrayList<>();
          for (JsonNode mark : marks) {
            all.add(mark(mark));
          }
          columns.put(name, all);
        });
    return columns;
  }

  private static MarkedColumn mark(JsonNode mark) {
    try {
      return Messages.read(mark, MarkedColumn.class);
    } catch (IOException fault) {
      throw Bridge.failure(
          "metadata of an encrypted column is not as written: " + fault.getMessage());
    }
  }
}
