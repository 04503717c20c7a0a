package io.lockgate.spark;

import io.lockgate.spark.bridge.Bridge;
import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogV2Util$;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.SupportsCatalogOptions;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.jdk.javaapi.CollectionConverters;

/**
 * {@code format("lockgate")}: a table by its name, as {@code lake.db.t}, or by its folder in the
 * warehouse of a catalog. It is the catalog's table, with its rights and options.
 */
public final class LockgateSource implements SupportsCatalogOptions, DataSourceRegister {
  private static final String PATH = "path";
  private static final String CATALOG = "spark.sql.catalog.";
  private static final String DATABASE = ".db";

  /** A table that an option names. */
  private record Named(String catalog, Identifier identifier) {}

  @Override
  public String shortName() {
    return "lockgate";
  }

  @Override
  public String extractCatalog(CaseInsensitiveStringMap options) {
    return named(options).catalog();
  }

  @Override
  public Identifier extractIdentifier(CaseInsensitiveStringMap options) {
    return named(options).identifier();
  }

  @Override
  public Optional<String> extractTimeTravelVersion(CaseInsensitiveStringMap options) {
    return Optional.ofNullable(options.get("versionAsOf"));
  }

  @Override
  public Optional<String> extractTimeTravelTimestamp(CaseInsensitiveStringMap options) {
    return Optional.ofNullable(options.get("timestampAsOf"));
  }

  @Override
  public StructType inferSchema(CaseInsensitiveStringMap options) {
    return CatalogV2Util$.MODULE$.v2ColumnsToStructType(table(options).columns());
  }

  /** For streams, which Spark does not read by the catalog. */
  @Override
  public Table getTable(StructType schema, Transform[] parts, Map<String, String> properties) {
    return table(new CaseInsensitiveStringMap(properties));
  }

  /** Tells whether the option by which this source finds a table names that one. */
  public static boolean names(
      CaseInsensitiveStringMap options, String catalog, String namespace, String name) {
    if (!options.containsKey(PATH)) {
      return false;
    }
    Named named = named(options);
    return named.catalog().equals(catalog)
        && named.identifier().equals(Identifier.of(new String[] {namespace}, name));
  }

  private static Table table(CaseInsensitiveStringMap options) {
    Named named = named(options);
    SparkSession session = SparkSession.active();
    TableCatalog catalog =
        (TableCatalog) session.sessionState().catalogManager().catalog(named.catalog());
    try {
      return catalog.loadTable(named.identifier());
    } catch (NoSuchTableException missing) {
      throw Bridge.failure(missing.getMessage());
    }
  }

  private static Named named(CaseInsensitiveStringMap options) {
    String text = options.get(PATH);
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
              if (key.startsWith(CATALOG) && value.equals(LockgateCatalog.class.getName())) {
                found.add(key.substring(CATALOG.length()));
              }
            });
    return found;
  }

  private static Named byName(SparkSession session, String text, Set<String> catalogs) {
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
    return new Named(catalog, Identifier.of(namespace, parts.get(parts.size() - 1)));
  }

  private static String first(Set<String> names) {
    return names.iterator().next();
  }

  private static Named byFolder(SparkSession session, String text, Set<String> catalogs) {
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
        return new Named(catalog, Identifier.of(namespace, folder.getName()));
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
