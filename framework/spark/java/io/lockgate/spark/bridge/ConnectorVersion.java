package io.lockgate.spark.bridge;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.URL;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.package$;

/**
 * What this jar is, and whether it belongs into this Spark.
 *
 * <p>A jar is compiled for one minor of Spark: classes of others differ, and rules that fail to
 * load would let statements pass. So the plugin and the extension check before they name any other
 * class.
 */
public final class ConnectorVersion {
  private static final String ENTRY = "io/lockgate/spark/version.properties";
  private static final Pattern MINOR = Pattern.compile("\\d+\\.\\d+(?!\\d)");
  private static final List<Properties> JARS = read();

  private ConnectorVersion() {}

  public static String version() {
    return JARS.get(0).getProperty("version", "unknown");
  }

  public static int protocol() {
    return Integer.parseInt(JARS.get(0).getProperty("protocol", "-1"));
  }

  /** Refuses to start if this jar is of another Spark, or not the only one. */
  public static void check() {
    String fault = fault();
    if (fault != null) {
      throw new IllegalStateException(fault);
    }
  }

  /** The fault of this jar in this Spark, or null. */
  public static String fault() {
    for (Properties other : JARS) {
      if (!other.equals(JARS.get(0))) {
        return "VersionMismatchError: two different connector jars are on the class path, "
            + described(JARS.get(0))
            + " and "
            + described(other)
            + ": keep the one for Spark "
            + package$.MODULE$.SPARK_VERSION();
      }
    }
    return fault(JARS.get(0).getProperty("spark", "unknown"), package$.MODULE$.SPARK_VERSION());
  }

  /** The fault of a jar that was compiled for one version of Spark in another, or null. */
  public static String fault(String compiled, String running) {
    String minor = minor(running);
    return minor(compiled).equals(minor)
        ? null
        : "VersionMismatchError: the connector jar is compiled for Spark "
            + compiled
            + ", and this is Spark "
            + running
            + ": start Spark with the jar that `lockgate jar --spark "
            + minor
            + "` prints; Lockgate "
            + version()
            + " has jars for Spark "
            + JARS.get(0).getProperty("sparks", "unknown");
  }

  /** What the driver tells executors of its jar, for {@link #checkWith}. */
  public static Map<String, String> told() {
    return Map.of("jar", described(JARS.get(0)), "same", same(JARS.get(0)));
  }

  /** Refuses to start an executor whose jar is not the driver's, which has told this of its own. */
  public static void checkWith(Map<String, String> driver) {
    if (!same(JARS.get(0)).equals(driver.get("same"))) {
      throw new IllegalStateException(
          "VersionMismatchError: this executor has the connector jar "
              + described(JARS.get(0))
              + ", and the driver has "
              + driver.getOrDefault("jar", "one of another version")
              + ": start both with the jar that `lockgate jar` prints, as by --jars, and remove the"
              + " other one");
    }
  }

  /** Equal for jars that understand each other: patches of one minor of Spark do. */
  private static String same(Properties jar) {
    return String.join(
        " ",
        jar.getProperty("version"),
        jar.getProperty("protocol"),
        minor(jar.getProperty("spark", "unknown")));
  }

  private static String minor(String version) {
    Matcher found = MINOR.matcher(version);
    return found.lookingAt() ? found.group() : version;
  }

  private static String described(Properties jar) {
    return jar.getProperty("version") + " for Spark " + jar.getProperty("spark");
  }

  private static List<Properties> read() {
    try {
      List<Properties> found = new ArrayList<>();
      ClassLoader loader = ConnectorVersion.class.getClassLoader();
      for (URL each : Collections.list(loader.getResources(ENTRY))) {
        try (InputStream in = each.openStream()) {
          Properties properties = new Properties();
          properties.load(in);
          found.add(properties);
        }
      }
      return found.isEmpty() ? List.of(new Properties()) : found;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
