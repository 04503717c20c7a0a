package io.lockgate.spark.enforcement.parts;

import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.internal.SQLConf;
import scala.jdk.javaapi.CollectionConverters;

/**
 * References to variables of the server, {@code ${env:NAME}} and {@code ${system:NAME}}, in texts
 * and in values of settings.
 */
public final class ServerReferences {
  private static final Set<String> OF_SERVER = Set.of("env", "system");

  /** As Spark finds them, in {@code ConfigReader}. */
  private static final Pattern VARIABLE = Pattern.compile("\\$\\{(?:(\\w+?):)?(\\S+?)\\}");

  private ServerReferences() {}

  /** Tells whether a text has one, or names a setting whose value has one. */
  public static boolean in(String text, SQLConf conf) {
    return in(text, CollectionConverters.asJava(conf.getAllConfs()), new HashSet<>());
  }

  /** The settings that a session has changed to a value with one, in order. */
  public static List<String> inSettings(SparkSession session) {
    Map<String, String> now =
        CollectionConverters.asJava(session.sessionState().conf().getAllConfs());
    if (now.values().stream().noneMatch(value -> value.contains("${"))) {
      return List.of();
    }
    return ChangedSettings.of(session).stream()
        .filter(name -> now.containsKey(name) && in(now.get(name), now, new HashSet<>()))
        .toList();
  }

  /** The variables that texts name, by kind. */
  public static Map<String, Set<String>> named(Iterable<String> texts) {
    Map<String, Set<String>> named = new HashMap<>();
    OF_SERVER.forEach(kind -> named.put(kind, new HashSet<>()));
    for (String text : texts) {
      Matcher found = VARIABLE.matcher(text);
      while (found.find()) {
        if (found.group(1) != null && OF_SERVER.contains(found.group(1))) {
          named.get(found.group(1)).add(found.group(2));
        }
      }
    }
    return named;
  }

  private static boolean in(String text, Map<String, String> settings, Set<String> seen) {
    Matcher found = VARIABLE.matcher(text);
    while (found.find()) {
      String kind = found.group(1);
      String name = found.group(2);
      if (kind != null && OF_SERVER.contains(kind.toLowerCase(Locale.ROOT))
          || seen.add(name) && in(settings.getOrDefault(name, ""), settings, seen)) {
        return true;
      }
    }
    return false;
  }
}
