package io.lockgate.spark.keys;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.enforcement.parts.DriverLink;
import io.lockgate.spark.enforcement.parts.Fields;
import io.lockgate.spark.enforcement.parts.Part;
import java.util.Map;
import java.util.regex.Pattern;
import org.apache.spark.api.plugin.PluginContext;

/** Local keys of files for executors, which request them from the driver. */
public final class KeyPart implements Part {
  private static final Pattern SCOPE = Pattern.compile("keys-[0-9a-f]{32}(!strict)?");
  private static final Pattern BASE64 = Pattern.compile("[0-9A-Za-z+/]{1,65536}={0,2}");
  private static final Pattern CIPHER = Pattern.compile("AES_CTR_(128|256)");

  @Override
  public AutoCloseable startOnExecutor(PluginContext plugin, DriverLink driver) {
    KeyService.reachDriverBy(driver);
    CipherWarmUp.start();
    return null;
  }

  @Override
  public Map<String, Answer> answers() {
    return Map.of(
        "keys.unwrap", fields -> Bridge.ask("keys.unwrap", unwrap(fields)),
        "keys.create", fields -> Bridge.ask("keys.create", create(fields)));
  }

  private static ObjectNode unwrap(Fields fields) {
    return key(fields)
        .put("version", fields.count("version"))
        .put("algorithm", fields.text("algorithm", CIPHER))
        .put("encrypted", fields.text("encrypted", BASE64));
  }

  private static ObjectNode create(Fields fields) {
    ObjectNode request = key(fields).putNull("version").putNull("algorithm");
    return fields.isNull("version")
        ? request
        : request
            .put("version", fields.count("version"))
            .put("algorithm", fields.text("algorithm", CIPHER));
  }

  private static ObjectNode key(Fields fields) {
    return Bridge.object()
        .put("scope", fields.text("scope", SCOPE))
        .put("name", fields.text("name", Fields.NAME));
  }
}
