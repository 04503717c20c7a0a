package io.lockgate.spark.enforcement.parts;

import io.lockgate.spark.bridge.RequestSessions;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;
import java.util.WeakHashMap;
import org.apache.spark.internal.config.ConfigEntry;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.internal.SQLConf$;
import scala.Tuple2;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The settings in which a session differs from what its application started with.
 *
 * <p>A client may change them without a statement, as {@code spark.conf.set} of Spark Connect does,
 * and no rule of Spark sees that. So they are compared when the next statement is decided about.
 * Spark itself enters settings in the session of a stream, mostly with their own defaults; those
 * change nothing.
 */
public final class ChangedSettings {
  /** Settings of the application itself, by the session's name, which lives as long as it does. */
  private static final Map<String, Map<String, String>> OWN = new WeakHashMap<>();

  /**
   * What sessions were started with, by their names. Spark clones a session to fill a cache, and
   * the clone forgets these options: its settings would differ from those of the application.
   */
  private static final Map<String, Map<String, String>> STARTED = new WeakHashMap<>();

  private ChangedSettings() {}

  /** Notes that the application, and no client, sets this in a session. */
  public static void ofApplication(SparkSession session, String name, String value) {
    synchronized (OWN) {
      OWN.computeIfAbsent(RequestSessions.nameOf(session), any -> new HashMap<>()).put(name, value);
    }
  }

  /** The names of those settings, in order. */
  public static List<String> of(SparkSession session) {
    Map<String, String> now = asJava(session.sessionState().conf().getAllConfs());
    Map<String, String> started = started(session);
    Set<String> names = new TreeSet<>();
    for (Map<String, String> either : List.of(now, started)) {
      for (String name : either.keySet()) {
        if (!Objects.equals(valueOf(name, now), valueOf(name, started))) {
          names.add(name);
        }
      }
    }
    Map<String, String> own;
    synchronized (OWN) {
      own = OWN.getOrDefault(RequestSessions.nameOf(session), Collections.emptyMap());
      names.removeIf(name -> own.containsKey(name) && own.get(name).equals(now.get(name)));
    }
    return new ArrayList<>(names);
  }

  /** The value of a setting in force: its text there, else its default, else null. */
  private static String valueOf(String name, Map<String, String> settings) {
    String text = settings.get(name);
    ConfigEntry<?> entry = text == null ? SQLConf$.MODULE$.getConfigEntry(name) : null;
    return entry == null || entry.defaultValue().isEmpty() ? text : entry.defaultValueString();
  }

  private static Map<String, String> started(SparkSession session) {
    Map<String, String> found = new HashMap<>();
    for (Tuple2<String, String> each : session.sparkContext().conf().getAll()) {
      found.put(each._1(), each._2());
    }
    found.putAll(startedWith(session));
    return found;
  }

  private static Map<String, String> startedWith(SparkSession session) {
    Map<String, String> own = asJava(session.initialSessionOptions());
    String name = RequestSessions.nameOf(session); // a clone has the name of its origin
    synchronized (STARTED) {
      if (!own.isEmpty()) {
        STARTED.put(name, own);
      }
      return STARTED.getOrDefault(name, own);
    }
  }

  private static Map<String, String> asJava(
      scala.collection.immutable.Map<String, String> settings) {
    return CollectionConverters.asJava(settings);
  }
}
