package io.lockgate.spark.integrity;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.keys.GranuleMac;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;

/** Runs the vectors of authentication codes. */
public final class IntegrityTwins {
  private IntegrityTwins() {}

  /**
   * The tags and the wrapped key of a vector, by the names that it has for them; and under {@code
   * matches}, for each granule, whether its tag fits it, fits it with one bit changed, and fits it
   * without its last byte.
   */
  public static String granules(String vector) throws IOException {
    JsonNode root = Bridge.JSON.readTree(vector);
    byte[] key = bytes(root, "mac_key");
    byte[] data = new byte[root.get("length").asInt()];
    for (int i = 0; i < data.length; i++) {
      data[i] = (byte) (i % 251);
    }
    GranuleMac mac = new GranuleMac(key);
    int stripe = root.get("stripe").asInt();
    int stream = root.get("ordinal").asInt();
    ObjectNode found = Bridge.JSON.createObjectNode();
    ArrayNode tags = found.putArray("tags");
    ArrayNode matches = found.putArray("matches");
    for (int number = 0; number * GranuleMac.GRANULE < data.length; number++) {
      int first = number * GranuleMac.GRANULE;
      byte[] part =
          Arrays.copyOfRange(data, first, Math.min(first + GranuleMac.GRANULE, data.length));
      byte[] tag = mac.tag(stripe, stream, number, inTwoPieces(part));
      tags.add(HexFormat.of().formatHex(tag));
      ArrayNode each = matches.addArray();
      each.add(mac.matches(stripe, stream, number, part, 0, part.length, tag, 0));
      each.add(mac.matches(stripe, stream, number, part, 0, part.length - 1, tag, 0));
      part[part.length / 2] ^= 1;
      each.add(mac.matches(stripe, stream, number, part, 0, part.length, tag, 0));
    }
    byte[] footer = mac.tag(stripe, GranuleMac.STRIPE_FOOTER, 0, inTwoPieces(cut(data, 100)));
    byte[] tail = mac.tag(-1, -1, 0, inTwoPieces(cut(data, 1000)));
    String name = root.get("key_name").asText();
    byte[] wrapped = MacKeys.wrap(key, bytes(root, "local_key"), name);
    byte[] unwrapped = MacKeys.unwrap(bytes(root, "wrapped"), bytes(root, "local_key"), name);
    return found
        .put("footer_tag_of_first_100", HexFormat.of().formatHex(footer))
        .put("tail_tag_of_first_1000", HexFormat.of().formatHex(tail))
        .put("wrapped", HexFormat.of().formatHex(wrapped))
        .put("mac_key", HexFormat.of().formatHex(unwrapped))
        .put(
            "other_name",
            MacKeys.unwrap(bytes(root, "wrapped"), bytes(root, "local_key"), name + "x") != null)
        .toString();
  }

  private static byte[] bytes(JsonNode root, String name) {
    return HexFormat.of().parseHex(root.get(name).asText());
  }

  private static byte[] cut(byte[] data, int length) {
    return Arrays.copyOf(data, length);
  }

  private static List<ByteBuffer> inTwoPieces(byte[] data) {
    int middle = data.length / 3;
    return List.of(
        ByteBuffer.wrap(data, 0, middle), ByteBuffer.wrap(data, middle, data.length - middle));
  }
}
