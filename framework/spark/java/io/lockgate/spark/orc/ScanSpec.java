package io.lockgate.spark.orc;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.Serializable;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.StructType;

/** What every reader of one scan must know. */
public final class ScanSpec implements Serializable {
  public static ScanSpec of(StructType tableSchema, StructType readSchema, JsonNode plan, Filter[] filters) {
    throw new UnsupportedOperationException();
  }
}
