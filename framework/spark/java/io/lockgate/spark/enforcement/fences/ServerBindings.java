package io.lockgate.spark.enforcement.fences;

import io.lockgate.spark.enforcement.Govern;
import io.lockgate.spark.enforcement.parts.ServerReferences;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.function.UnaryOperator;
import org.apache.spark.internal.config.ConfigProvider;
import org.apache.spark.internal.config.ConfigReader;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.internal.SQLConf$;
import scala.Option;
import scala.Tuple2;

/**
 * Hides the server's variables from the settings of governed sessions: a client may set one to
 * {@code ${env:NAME}} and have it read without a statement, as Spark's catalog reads the name of
 * the current catalog, or as another setting falls back to it.
 *
 * <p>Such a text then stays as it is. Variables that Spark's own settings of the application name
 * are still found.
 */
final class ServerBindings {
  private static final String THREAD = "lockgate-settings";

  private ServerBindings() {}

  /** Hides them in one session, whose state is there. */
  static void hide(SparkSession session) {
    ConfigReader reader = session.sessionState().conf().reader();
    Map<String, UnaryOperator<String>> values =
        Map.of("env", System::getenv, "system", System::getProperty);
    Map<String, Set<String>> named = named(session);
    values.forEach((kind, found) -> reader.bind(kind, new Fence(session, named.get(kind), found)));
  }

  /**
   * Hides them in a session whose state is being made, as soon as it is: nobody gets the settings
   * of a session without its state.
   */
  static void hideSoon(SparkSession session) {
    if (Thread.currentThread().getName().equals(THREAD)) {
      return; // the session's own thread has failed to make its state, and says so
    }
    Thread thread = new Thread(() -> hide(session), THREAD);
    thread.setDaemon(true);
    thread.start();
  }

  /** The variables that the application's own settings of Spark SQL name, by kind. */
  private static Map<String, Set<String>> named(SparkSession session) {
    Map<String, String> settings = new HashMap<>();
    for (Tuple2<String, String> each : session.sparkContext().conf().getAll()) {
      if (SQLConf$.MODULE$.getConfigEntry(each._1()) != null) {
        settings.put(each._1(), each._2());
      }
    }
    return ServerReferences.named(settings.values());
  }

  /** Asks at each use: a plugin may be registered later. */
  private record Fence(SparkSession session, Set<String> named, UnaryOperator<String> values)
      implements ConfigProvider {
    @Override
    public Option<String> get(String name) {
      boolean isHidden = !named.contains(name) && Govern.decides(session);
      return isHidden ? Option.empty() : Option.apply(values.apply(name));
    }
  }
}
