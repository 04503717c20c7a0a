package io.lockgate.spark.orc;

import com.fasterxml.jackson.databind.JsonNode;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;

/** The folders of partitions: {@code name=value}, escaped as Paimon and Hive escape them. */
final class PartitionPaths {
  private static final String ESCAPED = "\"#%'*/:=?\\\u007F{}[]^";

  private PartitionPaths() {}

  /** The folder of one partition column; {@code legacy}, Paimon's default, names dates by their day number. */
  static String folder(String name, JsonNode value, DataType type, String defaultName, boolean legacy) {
    String text = value.isNull() ? "" : text(value, type, legacy);
    return escape(name) + "=" + escape(text.isBlank() ? defaultName : text);
  }

  private static String text(JsonNode value, DataType type, boolean legacy) {
    if (type instanceof TimestampType || type instanceof TimestampNTZType) {
      long micros = value.asLong();
      int nanos = (int) Math.floorMod(micros, 1_000_000L) * 1000;
      return LocalDateTime.ofEpochSecond(Math.floorDiv(micros, 1_000_000L), nanos, ZoneOffset.UTC).toString();
    } else if (type instanceof DateType && !legacy) {
      return LocalDate.ofEpochDay(value.asLong()).toString();
    } else if (type instanceof FloatType) {
      return Float.toString(Float.parseFloat(value.asText()));
    } else if (type instanceof DoubleType) {
      return Double.toString(Double.parseDouble(value.asText()));
    } else if (type instanceof BinaryType) {
      throw new IllegalArgumentException("a BINARY column cannot be a partition column");
    }
    return value.asText();
  }

  private static String escape(String text) {
    StringBuilder escaped = new StringBuilder();
    for (char c : text.toCharArray()) {
      if (c < ' ' || ESCAPED.indexOf(c) >= 0) {
        escaped.append(String.format("%%%02X", (int) c));
      } else {
        escaped.append(c);
      }
    }
    return escaped.toString();
  }
}
