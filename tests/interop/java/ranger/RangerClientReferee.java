import com.google.gson.Gson;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import io.lockgate.ranger.RangerServicePaimon;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.ranger.admin.client.RangerAdminRESTClient;
import org.apache.ranger.authorization.hadoop.config.RangerPluginConfig;
import org.apache.ranger.plugin.model.RangerService;
import org.apache.ranger.plugin.model.RangerServiceDef;
import org.apache.ranger.plugin.model.validation.RangerServiceDefHelper;
import org.apache.ranger.plugin.policyengine.RangerAccessRequestImpl;
import org.apache.ranger.plugin.policyengine.RangerAccessResourceImpl;
import org.apache.ranger.plugin.policyengine.RangerAccessResult;
import org.apache.ranger.plugin.service.RangerBasePlugin;
import org.apache.ranger.plugin.service.ResourceLookupContext;
import org.apache.ranger.plugin.util.GrantRevokeRequest;
import org.apache.ranger.plugin.util.RangerRoles;
import org.apache.ranger.plugin.util.RangerServiceNotFoundException;
import org.apache.ranger.plugin.util.RangerUserStore;
import org.apache.ranger.plugin.util.ServicePolicies;
import org.apache.ranger.plugin.util.ServiceTags;

/**
 * Ranger's own client of its admin, and Lockgate's jar for the admin: does what each line of
 * standard input says, a JSON object, and answers each by a line.
 */
public final class RangerClientReferee {
  private static final Gson GSON = new Gson();

  private RangerClientReferee() {}

  public static void main(String[] none) throws Exception {
    PrintStream out = System.out;
    System.setOut(System.err); // loggers write to it
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      JsonObject asked = JsonParser.parseString(line).getAsJsonObject();
      Map<String, Object> answer = new HashMap<>();
      try {
        answer(asked, answer);
      } catch (RangerServiceNotFoundException gone) {
        answer.put("gone", gone.getMessage());
      } catch (Exception error) {
        answer.put("error", String.valueOf(error));
      }
      out.println(GSON.toJson(answer));
      out.flush();
    }
    System.exit(0);
  }

  private static void answer(JsonObject asked, Map<String, Object> answer) throws Exception {
    switch (asked.get("do").getAsString()) {
      case "policies":
        ServicePolicies policies = client(asked).getServicePoliciesIfUpdated(version(asked), 0L);
        if (policies != null) {
          answer.put("version", policies.getPolicyVersion());
          answer.put("policies", size(policies.getPolicies()));
          answer.put("deltas", size(policies.getPolicyDeltas()));
          RangerServiceDef definition = policies.getServiceDef();
          answer.put("definition", definition == null ? null : definition.getName());
        }
        break;
      case "roles":
        RangerRoles roles = client(asked).getRolesIfUpdated(version(asked), 0L);
        answer.put("roles", roles == null ? null : roles.getRangerRoles().size());
        break;
      case "tags":
        ServiceTags tags = client(asked).getServiceTagsIfUpdated(version(asked), 0L);
        answer.put("tags", tags == null ? null : tags.getTags().size());
        break;
      case "users":
        RangerUserStore users = client(asked).getUserStoreIfUpdated(version(asked), 0L);
        answer.put("groups", users == null ? null : users.getUserGroupMapping());
        break;
      case "grant":
        client(asked).grantAccess(GSON.fromJson(asked.get("request"), GrantRevokeRequest.class));
        break;
      case "revoke":
        client(asked).revokeAccess(GSON.fromJson(asked.get("request"), GrantRevokeRequest.class));
        break;
      case "plugin":
        plugin(asked, answer);
        break;
      case "definition":
        RangerServiceDef ours = GSON.fromJson(asked.get("definition"), RangerServiceDef.class);
        RangerServiceDefHelper helper = new RangerServiceDefHelper(ours, false);
        answer.put("valid", helper.isResourceGraphValid());
        answer.put("hierarchies", helper.getResourceHierarchies(0).size());
        break;
      case "service":
        service(asked, answer);
        break;
      default:
        throw new IllegalArgumentException(asked.toString());
    }
  }

  private static RangerAdminRESTClient client(JsonObject asked) {
    Configuration configuration = new Configuration(false);
    String prefix = "ranger.plugin.paimon";
    configuration.set(prefix + ".policy.rest.url", asked.get("url").getAsString());
    configuration.set(prefix + ".policy.rest.client.max.retry.attempts", "0");
    configuration.set(prefix + ".supports.policy.deltas", "true");
    configuration.set(prefix + ".supports.tag.deltas", "true");
    RangerAdminRESTClient client = new RangerAdminRESTClient();
    client.init(asked.get("service").getAsString(), "lockgate", prefix, configuration);
    return client;
  }

  /** The plugin that every service of Ranger has: it polls, keeps a cache and decides. */
  private static void plugin(JsonObject asked, Map<String, Object> answer) throws Exception {
    String name = asked.get("service").getAsString();
    RangerBasePlugin plugin =
        new RangerBasePlugin(new RangerPluginConfig("paimon", name, "lockgate", null, null, null));
    plugin.init();
    Map<String, Object> elements = new HashMap<>();
    asked
        .getAsJsonObject("resource")
        .entrySet()
        .forEach(e -> elements.put(e.getKey(), e.getValue().getAsString()));
    RangerAccessRequestImpl request =
        new RangerAccessRequestImpl(
            new RangerAccessResourceImpl(elements),
            "select",
            asked.get("user").getAsString(),
            Set.of(),
            Set.of());
    RangerAccessResult found = plugin.isAccessAllowed(request);
    answer.put("allowed", found != null && found.getIsAllowed());
    answer.put("version", plugin.getPoliciesVersion());
    plugin.cleanup();
  }

  private static void service(JsonObject asked, Map<String, Object> answer) throws Exception {
    RangerServicePaimon service = new RangerServicePaimon();
    RangerService configured = new RangerService();
    Map<String, String> configs = new HashMap<>();
    asked
        .getAsJsonObject("configs")
        .entrySet()
        .forEach(e -> configs.put(e.getKey(), e.getValue().getAsString()));
    configured.setName("lake");
    configured.setType("paimon");
    configured.setConfigs(configs);
    service.init(new RangerServiceDef(), configured);
    answer.put("valid", service.validateConfig());
    if (asked.has("lookup")) {
      ResourceLookupContext context =
          GSON.fromJson(asked.get("lookup"), ResourceLookupContext.class);
      answer.put("found", service.lookupResource(context));
    }
  }

  private static long version(JsonObject asked) {
    return asked.get("version").getAsLong();
  }

  private static Integer size(List<?> list) {
    return list == null ? null : list.size();
  }
}
