package io.lockgate.spark.bridge;

import java.lang.reflect.Field;
import java.util.Map;
import java.util.Optional;
import java.util.WeakHashMap;
import org.apache.spark.sql.classic.SparkSession;

/**
 * The users of Spark Connect's sessions.
 *
 * <p>Spark's server keeps them to itself: {@code current_user()} answers the server's own user to
 * everybody. So they are found among its sessions. Only a server whose sessions cannot be looked at
 * refuses to answer, for the wrong user would get rights of another.
 */
final class ConnectUsers {
  private static final String SERVICE = "org.apache.spark.sql.connect.service.SparkConnectService$";

  /** By the session's name, which lives as long as the session does. */
  private static final Map<String, Optional<String>> USERS = new WeakHashMap<>();

  private ConnectUsers() {}

  /** The user for whom a client made the session, or null if no client did. */
  static String of(SparkSession session) {
    String name = RequestSessions.nameOf(session);
    synchronized (USERS) {
      Optional<String> noted = USERS.get(name);
      if (noted == null) {
        noted = Optional.ofNullable(found(name));
        USERS.put(name, noted);
      }
      return noted.orElse(null);
    }
  }

  private static String found(String name) {
    Object service = service();
    if (service == null) {
      return null;
    }
    try {
      if (!(boolean) service.getClass().getMethod("started").invoke(service)) {
        return null;
      }
      Object manager = service.getClass().getMethod("sessionManager").invoke(service);
      Field sessions = manager.getClass().getDeclaredField("sessionStore");
      sessions.setAccessible(true);
      for (Object holder : ((Map<?, ?>) sessions.get(manager)).values()) {
        Object session = holder.getClass().getMethod("session").invoke(holder);
        if (RequestSessions.nameOf((SparkSession) session).equals(name)) {
          return (String) holder.getClass().getMethod("userId").invoke(holder);
        }
      }
      return null;
    } catch (ReflectiveOperationException | ClassCastException e) {
      throw Bridge.failure(
          "Lockgate cannot find the user of this Spark Connect session: this Spark keeps its"
              + " sessions elsewhere ("
              + e
              + ")");
    }
  }

  private static Object service() {
    try {
      return Class.forName(SERVICE).getField("MODULE$").get(null);
    } catch (ReflectiveOperationException | LinkageError e) {
      return null; // this Spark has no Connect
    }
  }
}
