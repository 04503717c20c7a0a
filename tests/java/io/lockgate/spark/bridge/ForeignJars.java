package io.lockgate.spark.bridge;

import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Path;
import java.util.Map;
import org.apache.spark.api.plugin.SparkPlugin;
import org.apache.spark.package$;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.Function1;

/**
 * Tells whether connector jars of other Sparks are refused by each door that Spark comes in by,
 * with both versions in the message; `java -cp "SPARK/jars/*" ForeignJars.java JAR ...`.
 */
public final class ForeignJars {
  private ForeignJars() {}

  /** What Spark does with a class of the connector. */
  private interface Door {
    void enter(ClassLoader connector) throws Exception;
  }

  private static final Map<String, Door> DOORS =
      Map.of(
          "the plugin on the driver",
          connector -> ((SparkPlugin) made(connector, "LockgatePlugin")).driverPlugin(),
          "the plugin on executors",
          connector -> ((SparkPlugin) made(connector, "LockgatePlugin")).executorPlugin(),
          "the extension",
          connector -> extension(connector).apply(new SparkSessionExtensions()),
          "the catalog, without plugin and extension",
          connector ->
              ((CatalogPlugin) made(connector, "LockgateCatalog"))
                  .initialize("lake", new CaseInsensitiveStringMap(Map.of())));

  @SuppressWarnings("unchecked") // the class is known by its name alone
  private static Function1<SparkSessionExtensions, ?> extension(ClassLoader connector)
      throws Exception {
    return (Function1<SparkSessionExtensions, ?>) made(connector, "LockgateExtensions");
  }

  private static Object made(ClassLoader connector, String name) throws Exception {
    Class<?> found = connector.loadClass("io.lockgate.spark." + name);
    return found.getDeclaredConstructor().newInstance();
  }

  /** Runs the doors; the process ends with 1 if one lets a jar in, or fails otherwise. */
  public static void main(String[] jars) throws Exception {
    boolean failed = false;
    for (String jar : jars) {
      URL[] url = {Path.of(jar).toUri().toURL()};
      try (URLClassLoader connector = new URLClassLoader(url, ForeignJars.class.getClassLoader())) {
        // Spark makes one of each source, whatever the format that a query names.
        ((DataSourceRegister) made(connector, "LockgateSource")).shortName();
        for (Map.Entry<String, Door> door : DOORS.entrySet()) {
          String fault = fault(door.getValue(), connector, jar);
          if (fault != null) {
            failed = true;
            System.out.println(Path.of(jar).getFileName() + ", " + door.getKey() + ": " + fault);
          }
        }
      }
    }
    String running = package$.MODULE$.SPARK_VERSION();
    System.out.println("Spark " + running + (failed ? " lets in" : " refuses") + " other jars");
    System.exit(failed ? 1 : 0);
  }

  /** What is wrong with what a door says, or null. */
  private static String fault(Door door, ClassLoader connector, String jar) {
    String minor = Path.of(jar).getFileName().toString().replaceAll("lockgate-spark-|_.*", "");
    try {
      door.enter(connector);
      return "lets it in";
    } catch (Throwable refusal) {
      String said = String.valueOf(refusal.getMessage());
      boolean right =
          said.contains("VersionMismatchError: the connector jar is compiled for Spark " + minor)
              && said.contains("this is Spark " + package$.MODULE$.SPARK_VERSION() + ": ");
      return right ? null : refusal.toString();
    }
  }
}
