package io.lockgate.spark.lineage;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lockgate.spark.bridge.Bridge;

/** The numbers of kinds of edges, by the names that Python gives them. */
public final class LineageTwins {
  private LineageTwins() {}

  /** Every kind with its number, as JSON. */
  public static String kinds() {
    ObjectNode out = Bridge.object();
    put(out, "IDENTITY", Dependencies.IDENTITY);
    put(out, "TRANSFORMATION", Dependencies.TRANSFORMATION);
    put(out, "AGGREGATION", Dependencies.AGGREGATION);
    return out.put("CONDITIONAL", Dependencies.CONDITIONAL)
        .put("WINDOW", Dependencies.WINDOW)
        .put("FILTER", Dependencies.FILTER)
        .put("JOIN", Dependencies.JOIN)
        .put("GROUP_BY", Dependencies.GROUP_BY)
        .put("SORT", Dependencies.SORT)
        .put("OPAQUE", Dependencies.OPAQUE)
        .toString();
  }

  /** A column of a path, as records name it. */
  public static String columnText(String path) throws JsonProcessingException {
    return Sources.text(Bridge.JSON.readTree(path));
  }

  private static void put(ObjectNode out, String name, int kind) {
    out.put(name, kind).put("MASKED_" + name, Dependencies.masked(kind));
  }
}
