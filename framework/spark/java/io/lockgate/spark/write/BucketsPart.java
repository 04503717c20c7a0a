package io.lockgate.spark.write;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.bridge.Shapes;
import io.lockgate.spark.parts.DriverLink;
import io.lockgate.spark.parts.Fields;
import io.lockgate.spark.parts.Part;
import java.util.Map;
import java.util.regex.Pattern;
import org.apache.spark.api.plugin.PluginContext;

/** Buckets of keys for tasks on executors, which request them from the driver. */
public final class BucketsPart implements Part {
  static final String QUESTION = "write.assign";
  private static final Pattern WRITE = Pattern.compile("[0-9a-f-]{36}");
  private static final Pattern BASE64 = Pattern.compile("[0-9A-Za-z+/]{1,1048576}={0,2}");

  @Override
  public AutoCloseable startOnExecutor(PluginContext plugin, DriverLink driver) {
    AskedBuckets.reachDriverBy(driver);
    return null;
  }

  @Override
  public Map<String, Answer> answers() {
    return Map.of(QUESTION, fields -> Bridge.ask(QUESTION, request(fields)));
  }

  private static ObjectNode request(Fields fields) {
    ObjectNode request =
        Bridge.object()
            .put("write_id", fields.text("write_id", WRITE))
            .put("hashes", fields.text("hashes", BASE64));
    request.set("partition", fields.json().get("partition"));
    String fault = Shapes.faultInRequest(QUESTION, request);
    if (fault != null) {
      throw new IllegalArgumentException(
          "a task asked for buckets by an invalid message: " + fault);
    }
    return request;
  }
}
