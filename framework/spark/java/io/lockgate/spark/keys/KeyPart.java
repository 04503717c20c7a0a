package io.lockgate.spark.keys;

import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.enforcement.parts.DriverLink;
import io.lockgate.spark.enforcement.parts.Fields;
import io.lockgate.spark.enforcement.parts.Part;
import io.lockgate.spark.messages.CreateKeyRequest;
import io.lockgate.spark.messages.CreatedKey;
import io.lockgate.spark.messages.Operations;
import io.lockgate.spark.messages.UnwrapAnswer;
import io.lockgate.spark.messages.UnwrapRequest;
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
        Operations.KEYS_UNWRAP.name(), KeyPart::unwrap,
        Operations.KEYS_CREATE.name(), KeyPart::create);
  }

  private static UnwrapAnswer unwrap(Fields fields) {
    UnwrapRequest request = fields.request(UnwrapRequest.class);
    check(request.scope(), request.name());
    Fields.checkVersion("version", request.version());
    Fields.check("algorithm", request.algorithm(), CIPHER);
    Fields.check("encrypted", request.encrypted(), BASE64);
    return Bridge.ask(Operations.KEYS_UNWRAP, request);
  }

  private static CreatedKey create(Fields fields) {
    CreateKeyRequest request = fields.request(CreateKeyRequest.class);
    check(request.scope(), request.name());
    if (request.version() == null) {
      return Bridge.ask(Operations.KEYS_CREATE, request.withAlgorithm(null));
    }
    Fields.checkVersion("version", request.version());
    Fields.check("algorithm", String.valueOf(request.algorithm()), CIPHER);
    return Bridge.ask(Operations.KEYS_CREATE, request);
  }

  private static void check(String scope, String name) {
    Fields.check("scope", scope, SCOPE);
    Fields.check("name", name, Fields.NAME);
  }
}
