package io.lockgate.spark.write;

import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.enforcement.parts.DriverLink;
import io.lockgate.spark.enforcement.parts.Fields;
import io.lockgate.spark.enforcement.parts.Part;
import io.lockgate.spark.messages.AssignAnswer;
import io.lockgate.spark.messages.AssignRequest;
import io.lockgate.spark.messages.LocateAnswer;
import io.lockgate.spark.messages.LocateRequest;
import io.lockgate.spark.messages.Operations;
import java.util.Map;
import java.util.regex.Pattern;
import org.apache.spark.api.plugin.PluginContext;

/** Buckets and partitions of keys for tasks on executors, which request them from the driver. */
public final class AssignmentPart implements Part {
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
        Operations.WRITE_ASSIGN.name(), AssignmentPart::assign,
        Operations.WRITE_LOCATE.name(), AssignmentPart::locate);
  }

  private static AssignAnswer assign(Fields fields) {
    AssignRequest request = fields.request(AssignRequest.class);
    Fields.check("write_id", request.writeId(), WRITE);
    Fields.check("hashes", request.hashes(), BASE64);
    return Bridge.ask(Operations.WRITE_ASSIGN, request);
  }

  private static LocateAnswer locate(Fields fields) {
    LocateRequest request = fields.request(LocateRequest.class);
    Fields.check("write_id", request.writeId(), WRITE);
    Fields.check("attempt", request.attempt(), ATTEMPT);
    Fields.check("kinds", request.kinds(), BASE64);
    return Bridge.ask(Operations.WRITE_LOCATE, request);
  }
}
