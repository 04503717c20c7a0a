package io.lockgate.spark.scan;

import io.lockgate.spark.bridge.Bridge;
import java.io.IOException;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The table that {@code load()} or {@code save()} of a source names: by its name, or by its folder.
 *
 * @param catalog the name of a catalog of ours
 * @param identifier the table in it
 */
public record TableAddress(String catalog, Identifier identifier) {
  /** The option under which Spark passes it on. */
  static final String OPTION = "path";

  private static final String CATALOG = "spark.sql.catalog.";
  private static final String CATALOG_CLASS = "io.lockgate.spark.LockgateCatalog";
  private static final String DATABASE = ".db";

  /** Tells whether options name this table, and not another one, or none. */
  boolean isNamedBy(CaseInsensitiveStringMap options) {
    try {
      return options.containsKey(OPTION) && equals(of(options));
    } catch (Exception none) { // the option is refused by its name
      return false;
    }
  }

  public static TableAddress of(CaseInsensitiveStringMap options) {
    String text = options.get(OPTION);
    if (text == null || text.isBlank()) {
      throw Bridge.failure(
          "format(\"lockgate\") reads and writes one table: give its name to load() or save(), such"
              + " as 'lake.db.t', or its folder");
    }
    SparkSession session = SparkSession.active();
    Set<String> catalogs = catalogs(session);
    return text.contains("/") ? byFolder(session, text, catalogs) : byName(session, text, catalogs);
  }

  /** The names of the session's catalogs of ours. */
  private static Set<String> catalogs(SparkSession session) {
    Set<String> found = new TreeSet<>();
    CollectionConverters.asJava(session.sessionState().conf().getAllConfs())
        .forEach(
            (key, value) -> {
              if (key.startsWith(CATALOG) && value.equals(CATALOG_CLASS)) {
                found.add(key.substring(CATALOG.length()));
              }
            });
    return found;
  }

  private static TableAddress byName(SparkSession session, String text, Set<String> catalogs) {
    List<String> parts;
    try {
      parts =
          CollectionConverters.asJava(
              session.sessionState().sqlParser().parseMultipartIdentifier(text));
    } catch (ParseException unreadable) {
      throw Bridge.failure("'" + text + "' is no name of a table: write 'lake.db.t'");
    }
    String current = session.sessionState().catalogManager().currentCatalog().name();
    String only = catalogs.contains(current) || catalogs.size() != 1 ? current : first(catalogs);
    String catalog = parts.size() == 3 ? parts.get(0) : only;
    if (parts.size() < 2 || parts.size() > 3 || !catalogs.contains(catalog)) {
      throw Bridge.failure(
          "'"
              + text
              + "' names no table of Lockgate's catalogs "
              + catalogs
              + ": write 'lake.db.t'");
    }
    String[] namespace = {parts.get(parts.size() - 2)};
    return new TableAddress(catalog, Identifier.of(namespace, parts.get(parts.size() - 1)));
  }

  private static String first(Set<String> names) {
    return names.iterator().next();
  }

  private static TableAddress byFolder(SparkSession session, String text, Set<String> catalogs) {
    Configuration hadoop = session.sessionState().newHadoopConf();
    Path folder = qualified(text, hadoop);
    Path database = folder.getParent();
    for (String catalog : catalogs) {
      String warehouse = session.conf().get(CATALOG + catalog + ".warehouse", "");
      if (database != null
          && database.getName().endsWith(DATABASE)
          && !warehouse.isEmpty()
          && qualified(warehouse, hadoop).equals(database.getParent())) {
        String name = database.getName();
        String[] namespace = {name.substring(0, name.length() - DATABASE.length())};
        return new TableAddress(catalog, Identifier.of(namespace, folder.getName()));
      }
    }
    throw Bridge.failure(
        "'"
            + text
            + "' is no folder of a table, such as WAREHOUSE/db.db/t, in a warehouse of Lockgate's"
            + " catalogs "
            + catalogs);
  }

  private static Path qualified(String text, Configuration hadoop) {
    Path path = new Path(text);
    try {
      return path.getFileSystem(hadoop).makeQualified(path);
    } catch (IOException | IllegalArgumentException failure) {
      throw Bridge.failure("'" + text + "' cannot be opened: " + failure.getMessage());
    }
  }
}
