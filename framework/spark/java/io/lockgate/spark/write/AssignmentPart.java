package io.lockgate.spark.write;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.bridge.Shapes;
import io.lockgate.spark.enforcement.parts.DriverLink;
import io.lockgate.spark.enforcement.parts.Fields;
import io.lockgate.spark.enforcement.parts.Part;
import java.util.Map;
import java.util.regex.Pattern;
import org.apache.spark.api.plugin.PluginContext;

/** Buckets and partitions of keys for tasks on executors, which request them from the driver. */
public final class AssignmentPart implements Part {
  static final String BUCKETS = "write.assign";
  static final String LOCATIONS = "write.locate";
  private static final Pattern WRITE = Pattern.compile("[0-9a-f-]{36}");
  private static final Pattern ATTEMPT = Pattern.compile("[0-9a-f-]{36}-[0-9]{1,10}-[0-9]{1,19}");
  private static final Pattern BASE64 = Pattern.compile("[0-9A-Za-z+/]{1,1048576}={0,2}");

  @Override
  public AutoCloseable startOnExecutor(PluginContext plugin, DriverLink driver) {
    PendingRows.reachDriverBy(driver);
    return null;
  }

  @Override
  public Map<String, Answer> answers() {
    return Map.of(
        BUCKETS,
        fields -> Bridge.ask(BUCKETS, checked(BUCKETS, buckets(fields))),
        LOCATIONS,
        fields -> Bridge.ask(LOCATIONS, checked(LOCATIONS, locations(fields))));
  }

  private static ObjectNode buckets(Fields fields) {
    ObjectNode request =
        Bridge.object()
            .put("write_id", fields.text("write_id", WRITE))
            .put("hashes", fields.text("hashes", BASE64));
    request.set("partition", fields.json().get("partition"));
    return request;
  }

  private static ObjectNode locations(Fields fields) {
    ObjectNode request =
        Bridge.object()
            .put("write_id", fields.text("write_id", WRITE))
            .put("attempt", fields.text("attempt", ATTEMPT))
            .put("kinds", fields.text("kinds", BASE64));
    request.set("columns", fields.json().get("columns"));
    return request;
  }

  private static ObjectNode checked(String question, ObjectNode request) {
    String fault = Shapes.faultInRequest(question, request);
    if (fault != null) {
      throw new IllegalArgumentException("a task asked where keys go, in a bad message: " + fault);
    }
    return request;
  }
}
