package io.lockgate.spark.orc;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.Serializable;

/** What every writer of one query must know. */
public final class WriteSpec implements Serializable {
  public static WriteSpec of(JsonNode begin) {
    throw new UnsupportedOperationException();
  }
}
