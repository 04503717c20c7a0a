package io.lockgate.spark.bridge;

import java.util.Map;
import java.util.WeakHashMap;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.catalyst.CurrentUserContext;
import org.apache.spark.sql.classic.SparkSession;
import scala.Option;

/** The user of requests to Python. */
public final class Users {
  /** The user that a session acts for, set by the server that made the session. */
  static final String USER = "spark.lockgate.user";

  /** Notes at the start of the application that its sessions may name a user. */
  static final String ACTS_FOR_OTHERS = "spark.lockgate.acts-for-others";

  /**
   * The user that a session acts for, by the session's name, which lives as long as the session
   * does.
   */
  private static final Map<String, String> ACTING = new WeakHashMap<>();

  private Users() {}

  /**
   * The user whom the active session acts for, else the one whose client made it by Spark Connect,
   * else Spark's own answer to {@code current_user()}. A client of Spark Connect sets what it likes
   * in its session, so that it may name nobody else.
   */
  public static String current() {
    Option<SparkSession> active = SparkSession.getActiveSession();
    String acting = active.isEmpty() ? null : acting(active.get());
    String client = active.isEmpty() ? null : ConnectUsers.of(active.get());
    if (acting != null && client != null && !acting.equals(client)) {
      throw Bridge.failure(
          USER + " names another user than the one whose client made this session: unset it");
    }
    if (client != null && client.isBlank()) {
      throw Bridge.failure(
          "The client of this Spark Connect session names no user: give one in its address,"
              + " sc://host:port/;user_id=NAME, or in its environment variable USER");
    }
    String named = acting == null ? client : acting;
    return named == null ? CurrentUserContext.getCurrentUser() : named;
  }

  /** The user of a session, as {@link #current} says it where the session is active. */
  public static String of(SparkSession session) {
    Option<SparkSession> before = SparkSession.getActiveSession();
    SparkSession.setActiveSession(session);
    try {
      return current();
    } finally {
      if (before.isDefined()) {
        SparkSession.setActiveSession(before.get());
      } else {
        SparkSession.clearActiveSession();
      }
    }
  }

  /**
   * A session that has acted for a user acts for no other, so that its SQL cannot change the user.
   */
  private static String acting(SparkSession session) {
    String named = session.conf().get(USER, null);
    if (named != null) {
      check(named, session.sparkContext());
    }
    String key = RequestSessions.nameOf(session);
    synchronized (ACTING) {
      String before = named == null ? ACTING.get(key) : ACTING.putIfAbsent(key, named);
      if (before != null && !before.equals(named)) {
        throw Bridge.failure(
            "This session already acts for another user than "
                + USER
                + " says: create a session for each user");
      }
    }
    return named;
  }

  private static void check(String named, SparkContext context) {
    if (named.isBlank()) {
      throw Bridge.failure(
          USER + " is empty: give the name of the user that the session acts for, or unset it");
    }
    if (!context.getConf().getBoolean(ACTS_FOR_OTHERS, false)) {
      throw Bridge.failure(
          USER
              + " is set, but this application was not started to act for others: unset it, or"
              + " start Spark with "
              + ACTS_FOR_OTHERS
              + "=true");
    }
  }
}
