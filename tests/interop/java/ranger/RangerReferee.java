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
import java.util.LinkedHashSet;
import java.util.Set;
import javax.script.ScriptEngine;
import org.apache.log4j.Level;
import org.apache.log4j.LogManager;
import org.apache.ranger.authorization.hadoop.config.RangerPluginConfig;
import org.apache.ranger.plugin.contextenricher.RangerTagForEval;
import org.apache.ranger.plugin.model.RangerTag;
import org.apache.ranger.plugin.policyengine.RangerAccessRequestImpl;
import org.apache.ranger.plugin.policyengine.RangerAccessResource;
import org.apache.ranger.plugin.policyengine.RangerAccessResourceImpl;
import org.apache.ranger.plugin.policyengine.RangerAccessResult;
import org.apache.ranger.plugin.policyengine.RangerPluginContext;
import org.apache.ranger.plugin.policyengine.RangerPolicyEngineImpl;
import org.apache.ranger.plugin.policyengine.RangerRequestScriptEvaluator;
import org.apache.ranger.plugin.policyresourcematcher.RangerPolicyResourceMatcher.MatchType;
import org.apache.ranger.plugin.util.RangerAccessRequestUtil;
import org.apache.ranger.plugin.util.RangerRoles;
import org.apache.ranger.plugin.util.RangerUserStore;
import org.apache.ranger.plugin.util.ScriptEngineUtil;
import org.apache.ranger.plugin.util.ServicePolicies;

/**
 * Ranger's own engine: files of {servicePolicies, roles, userStore, requests, scripts} in, a line
 * of JSON for each request and script out. A request has `tags`, each with a `matchType`; a script
 * is a text and the index of the request that it is run for.
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
    // Without it, each decision makes the texts of its messages.
    LogManager.getRootLogger().setLevel(Level.OFF);
    for (String file : files) {
      JsonObject said = JsonParser.parseString(Files.readString(Path.of(file))).getAsJsonObject();
      RangerPolicyEngineImpl engine = engine(said);
      RangerUserStore users = GSON.fromJson(said.get("userStore"), RangerUserStore.class);
      try (PrintStream out = new PrintStream(file + ".out", "UTF-8")) {
        for (JsonElement request : said.getAsJsonArray("requests")) {
          out.println(answer(engine, request.getAsJsonObject(), users));
        }
        if (said.has("scripts")) {
          ScriptEngine scripts = ScriptEngineUtil.createScriptEngine("s");
          for (JsonElement script : said.getAsJsonArray("scripts")) {
            JsonObject one = script.getAsJsonObject();
            JsonObject request =
                said.getAsJsonArray("requests")
                    .get(one.get("request").getAsInt())
                    .getAsJsonObject();
            out.println(
                holds(engine, request(request, users), one.get("script").getAsString(), scripts));
          }
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

  private static RangerAccessRequestImpl request(JsonObject said, RangerUserStore users) {
    RangerAccessRequestImpl request = GSON.fromJson(said, RangerAccessRequestImpl.class);
    request.setAccessType(request.getAccessType());
    if (request.getAccessTime() == null) {
      request.setAccessTime(new Date());
    }
    request.setContext(request.getContext());
    RangerAccessRequestUtil.setRequestUserStoreInContext(request.getContext(), users);
    if (said.has("tags")) {
      Set<RangerTagForEval> tags = new LinkedHashSet<>();
      for (JsonElement each : said.getAsJsonArray("tags")) {
        MatchType match = MatchType.valueOf(each.getAsJsonObject().get("matchType").getAsString());
        tags.add(new RangerTagForEval(GSON.fromJson(each, RangerTag.class), match));
      }
      RangerAccessRequestUtil.setRequestTagsInContext(request.getContext(), tags);
    }
    return request;
  }

  private static JsonObject answer(
      RangerPolicyEngineImpl engine, JsonObject said, RangerUserStore users) {
    int kind = said.get("kind").getAsInt();
    RangerAccessResult found = engine.evaluatePolicies(request(said, users), kind, null);
    engine.evaluateAuditPolicies(found);
    JsonObject result = new JsonObject();
    result.addProperty("allowed", found.getIsAllowed());
    result.addProperty("policy", found.getPolicyId());
    result.addProperty("audited", found.getIsAudited());
    result.addProperty("mask", kind == 1 ? found.getMaskType() : null);
    result.addProperty("maskedValue", kind == 1 ? found.getMaskedValue() : null);
    result.addProperty("maskCondition", kind == 1 ? found.getMaskCondition() : null);
    result.addProperty("filter", kind == 2 ? found.getFilterExpr() : null);
    return result;
  }

  private static JsonObject holds(
      RangerPolicyEngineImpl engine,
      RangerAccessRequestImpl request,
      String script,
      ScriptEngine scripts) {
    engine.getRequestProcessor().preProcess(request);
    RangerRequestScriptEvaluator evaluator =
        new RangerRequestScriptEvaluator(request, scripts, true);
    evaluator.evaluateConditionScript(script);
    JsonObject result = new JsonObject();
    result.addProperty("holds", evaluator.getResult());
    Object value = new RangerRequestScriptEvaluator(request, scripts, true).evaluateScript(script);
    result.addProperty("value", value == null ? null : value.toString());
    return result;
  }
}
