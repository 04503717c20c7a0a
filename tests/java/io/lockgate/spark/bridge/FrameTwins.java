package io.lockgate.spark.bridge;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.HexFormat;

/** Runs the vectors of frames of the bridge. */
public final class FrameTwins {
  private FrameTwins() {}

  /** The headers of payloads, in hexadecimal: each an object with {@code inline} and a length. */
  public static String written(String payloads) throws IOException {
    ArrayNode found = Bridge.JSON.createArrayNode();
    for (JsonNode each : Bridge.JSON.readTree(payloads)) {
      ByteBuffer header = ByteBuffer.allocate(FrameHeader.SIZE);
      FrameHeader.put(header, each.get("inline").asBoolean(), each.get("length").asInt());
      found.add(HexFormat.of().formatHex(header.array()));
    }
    return found.toString();
  }

  /** What headers in hexadecimal say: an object with {@code inline} and a length, null for none. */
  public static String read(String headers) throws IOException {
    ArrayNode found = Bridge.JSON.createArrayNode();
    for (JsonNode each : Bridge.JSON.readTree(headers)) {
      ByteBuffer header = ByteBuffer.wrap(HexFormat.of().parseHex(each.asText()));
      try {
        boolean inline = FrameHeader.isInline(header);
        found.addObject().put("inline", inline).put("length", FrameHeader.length(header));
      } catch (IOException refused) {
        found.addNull();
      }
    }
    return found.toString();
  }
}
