package io.lockgate.ranger;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.apache.ranger.plugin.client.BaseClient;
import org.apache.ranger.plugin.service.RangerBaseService;
import org.apache.ranger.plugin.service.ResourceLookupContext;

/**
 * Suggests names of databases, tables and columns to the policy editor of Ranger's admin, and tests
 * a service's configuration. It decides nothing.
 *
 * <p>Configuration: `warehouse`, an address for Hadoop's file systems, `catalog`, the warehouse's
 * name in policies, and settings of the file system (`fs.*`). Without `warehouse` it suggests only
 * the catalog.
 */
public class RangerServicePaimon extends RangerBaseService {
  private static final int MOST = 200;
  private static final int MOST_READ = 5000;

  @Override
  public Map<String, Object> validateConfig() {
    Map<String, Object> answer = new HashMap<>();
    String warehouse = warehouse();
    if (warehouse == null) {
      String message = "No warehouse is configured: policies work, the editor suggests no names.";
      BaseClient.generateResponseDataMap(true, message, message, null, null, answer);
      return answer;
    }
    try {
      names(warehouse).check();
      String message = "The warehouse can be listed.";
      BaseClient.generateResponseDataMap(true, message, message, null, null, answer);
    } catch (IOException | RuntimeException error) {
      String message = "The warehouse " + warehouse + " cannot be listed.";
      String why = message + " " + error;
      BaseClient.generateResponseDataMap(false, message, why, null, "warehouse", answer);
    }
    return answer;
  }

  @Override
  public List<String> lookupResource(ResourceLookupContext context) throws IOException {
    String start = context.getUserInput() == null ? "" : context.getUserInput();
    Map<String, List<String>> chosen = context.getResources();
    List<String> found = new ArrayList<>();
    for (String each :
        named(context.getResourceName(), chosen == null ? new HashMap<>() : chosen)) {
      boolean matches = each.toLowerCase(Locale.ROOT).startsWith(start.toLowerCase(Locale.ROOT));
      if (matches && found.size() < MOST && !found.contains(each)) {
        found.add(each);
      }
    }
    return found;
  }

  private List<String> named(String level, Map<String, List<String>> chosen) throws IOException {
    if ("catalog".equals(level)) {
      return Collections.singletonList(configs.getOrDefault("catalog", "paimon"));
    }
    String warehouse = warehouse();
    if (warehouse == null || level == null) {
      return Collections.emptyList();
    }
    WarehouseNames names = names(warehouse);
    List<String> databases = names.databases();
    if ("database".equals(level)) {
      return databases;
    }
    List<String> found = new ArrayList<>();
    for (String database : meant(chosen.get("database"), databases)) {
      List<String> tables = names.tables(database);
      if ("table".equals(level)) {
        found.addAll(tables);
      } else if ("column".equals(level)) {
        for (String table : meant(chosen.get("table"), tables)) {
          if (found.size() < MOST_READ) {
            found.addAll(names.columns(database, table));
          }
        }
      }
      if (found.size() >= MOST_READ) {
        break; // an editor waits for this
      }
    }
    return found;
  }

  /** Returns which names the editor's fields mean, which may hold `*` and other case. */
  private static List<String> meant(List<String> fields, List<String> names) {
    List<String> found = new ArrayList<>();
    if (fields != null) {
      for (String name : names) {
        if (fields.contains("*") || fields.stream().anyMatch(name::equalsIgnoreCase)) {
          found.add(name);
        }
      }
    }
    return found;
  }

  private String warehouse() {
    String given = configs == null ? null : configs.get("warehouse");
    return given == null || given.trim().isEmpty() ? null : given.trim();
  }

  private WarehouseNames names(String warehouse) throws IOException {
    Map<String, String> confs = new HashMap<>();
    configs.forEach(
        (key, value) -> {
          if (key.startsWith("fs.")) {
            confs.put(key, value);
          }
        });
    return new WarehouseNames(warehouse, confs);
  }
}
