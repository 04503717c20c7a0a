import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonDeserializer;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Date;
import org.apache.ranger.authorization.hadoop.config.RangerPluginConfig;
import org.apache.ranger.plugin.policyengine.RangerAccessRequestImpl;
import org.apache.ranger.plugin.policyengine.RangerAccessResource;
import org.apache.ranger.plugin.policyengine.RangerAccessResourceImpl;
import org.apache.ranger.plugin.policyengine.RangerAccessResult;
import org.apache.ranger.plugin.policyengine.RangerPluginContext;
import org.apache.ranger.plugin.policyengine.RangerPolicyEngineImpl;
import org.apache.ranger.plugin.util.RangerRoles;
import org.apache.ranger.plugin.util.ServicePolicies;

/**
 * Ranger's own engine: files of {servicePolicies, roles, requests} in, a line of JSON for each
 * request out.
 */
public final class RangerReferee {
  private static final Gson PLAIN =
      new GsonBuilder().setDateFormat("yyyyMMdd-HH:mm:ss.SSSZ").create();
  private static final JsonDeserializer<RangerAccessResource> RESOURCES =
      (json, type, context) -> PLAIN.fromJson(json, RangerAccessResourceImpl.class);
  private static final Gson GSON =
      new GsonBuilder()
          .setDateFormat("yyyyMMdd-HH:mm:ss.SSSZ")
          .registerTypeAdapter(RangerAccessResource.class, RESOURCES)
          .create();

  private RangerReferee() {}

  public static void main(String[] files) throws Exception {
    for (String file : files) {
      JsonObject said = JsonParser.parseString(Files.readString(Path.of(file))).getAsJsonObject();
      RangerPolicyEngineImpl engine = engine(said);
      try (PrintStream out = new PrintStream(file + ".out", "UTF-8")) {
        for (JsonElement request : said.getAsJsonArray("requests")) {
          out.println(answer(engine, request.getAsJsonObject()));
        }
      }
    }
    System.exit(0);
  }

  private static RangerPolicyEngineImpl engine(JsonObject said) {
    ServicePolicies policies = GSON.fromJson(said.get("servicePolicies"), ServicePolicies.class);
    policies.setServiceName("s");
    policies.setPolicyVersion(1L);
    RangerRoles roles = GSON.fromJson(said.get("roles"), RangerRoles.class);
    roles.setServiceName("s");
    roles.setRoleVersion(1L);
    String kind = policies.getServiceDef().getName();
    RangerPluginConfig config = new RangerPluginConfig(kind, null, "s", "cluster", "on-prem", null);
    return new RangerPolicyEngineImpl(policies, new RangerPluginContext(config), roles);
  }

  private static JsonObject answer(RangerPolicyEngineImpl engine, JsonObject said) {
    int kind = said.get("kind").getAsInt();
    RangerAccessRequestImpl request = GSON.fromJson(said, RangerAccessRequestImpl.class);
    request.setAccessType(request.getAccessType());
    request.setAccessTime(new Date());
    RangerAccessResult found = engine.evaluatePolicies(request, kind, null);
    JsonObject result = new JsonObject();
    result.addProperty("allowed", found.getIsAllowed());
    result.addProperty("policy", found.getPolicyId());
    result.addProperty("audited", found.getIsAudited());
    result.addProperty("mask", kind == 1 ? found.getMaskType() : null);
    result.addProperty("filter", kind == 2 ? found.getFilterExpr() : null);
    return result;
  }
}
