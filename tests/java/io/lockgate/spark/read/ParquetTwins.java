package io.lockgate.spark.read;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.bridge.TaskFilters;
import io.lockgate.spark.files.Columns;
import io.lockgate.spark.merge.Conformance;
import java.io.IOException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;

/** Runs the vectors of pruning on Parquet files. */
public final class ParquetTwins {
  private ParquetTwins() {}

  /**
   * How many rows of a file with one column a task reads for each predicate of a JSON array: row
   * groups and pages are left out as filters allow.
   */
  public static String rowsRead(String schema, String path, long size, String predicates)
      throws IOException {
    StructType columns = (StructType) DataType.fromJson(schema);
    String name = columns.apply(0).name();
    DataType type = columns.apply(0).dataType();
    FileLayout layout =
        new FileLayout(
            List.of(new Columns.Wanted(name, 0, type)),
            Map.of(0, name),
            new HashMap<>(Map.of(0, type)),
            column -> Map.of());
    SplitSpec.DataFile file = new SplitSpec.DataFile(path, size, 0);
    Configuration conf = new Configuration(); // which is slow to make
    ArrayNode counts = Bridge.JSON.createArrayNode();
    for (JsonNode each : Bridge.JSON.readTree(predicates)) {
      SearchArguments search =
          new SearchArguments(
              TaskFilters.of(new Predicate[] {Conformance.predicate(each)}), columns);
      OrcFileReader.Settings settings = new OrcFileReader.Settings(0, Long.MAX_VALUE, search, 1000);
      long rows = 0;
      try (ParquetFileReader reader =
          ParquetFileReader.open(conf, file, layout, settings, new ColumnVector[1])) {
        while (reader.nextBatch()) {
          rows += reader.batch().numRows();
        }
      }
      counts.add(rows);
    }
    return counts.toString();
  }
}
