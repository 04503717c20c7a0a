package io.lockgate.spark.bridge;

import java.lang.ref.WeakReference;
import java.lang.reflect.Field;
import java.security.SecureRandom;
import java.util.Collections;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Properties;
import java.util.WeakHashMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.internal.SessionState;
import scala.Option;

/**
 * The threads that wait for Python, by the number of their request, with the session and job of
 * each.
 *
 * <p>Python answers on threads of its own. What it calls here during that time comes by other
 * threads of this JVM, which act for the one that waits: with its active session, and its local
 * properties, as a job group is one.
 */
public final class RequestSessions {
  private static final int MOST_GRANTS = 10_000;
  private static final SecureRandom RANDOM = new SecureRandom();
  private static final AtomicLong NUMBER = new AtomicLong();
  private static final Map<Long, RequestSession> WAITING = new ConcurrentHashMap<>();

  /** By identity, which is how states compare. */
  private static final Map<SessionState, String> NAMES = new WeakHashMap<>();

  /**
   * The sessions whose plans carry a grant. Spark plans some queries, as those of {@code
   * DataFrame.rdd}, while another session of the thread is active; their scans ask for the one that
   * they were analysed in.
   */
  private static final Map<String, WeakReference<SparkSession>> BY_GRANT =
      Collections.synchronizedMap(
          new LinkedHashMap<>() {
            @Override
            protected boolean removeEldestEntry(
                Map.Entry<String, WeakReference<SparkSession>> eldest) {
              return size() > MOST_GRANTS;
            }
          });

  /** Spark keeps to itself what a session was cloned from. */
  private static final Field PARENT = parentField();

  private record RequestSession(SparkSession session, Properties properties) {}

  private RequestSessions() {}

  /**
   * The number of a request, for {@link #forget}, and the name of its session; null without one.
   */
  record Asker(Long number, String session) {}

  /** Notes that this thread asks Python. */
  static Asker note() {
    Option<SparkSession> active = SparkSession.getActiveSession();
    if (active.isEmpty() || active.get().sparkContext().isStopped()) {
      return new Asker(null, null);
    }
    SparkSession session = active.get();
    long number = NUMBER.incrementAndGet();
    WAITING.put(number, new RequestSession(session, session.sparkContext().getLocalProperties()));
    return new Asker(number, nameOf(session));
  }

  static void forget(Asker asker) {
    if (asker.number() != null) {
      WAITING.remove(asker.number());
    }
  }

  /**
   * A name for a session that nobody can guess. Those that Spark clones from it, as it does for
   * each stream, have the same one: what the session may do, they may.
   */
  public static String nameOf(SparkSession session) {
    SessionState own = session.sessionState();
    SessionState parent = parentOf(session);
    synchronized (NAMES) {
      String name = NAMES.get(own);
      if (name == null) {
        name = parent == null ? random() : NAMES.computeIfAbsent(parent, any -> random());
        NAMES.put(own, name);
      }
      return name;
    }
  }

  /** The state of the session that this one was cloned from, or null. */
  private static SessionState parentOf(SparkSession session) {
    try {
      return PARENT == null
          ? null
          : ((Option<?>) PARENT.get(session)).map(SessionState.class::cast).getOrElse(() -> null);
    } catch (IllegalAccessException e) {
      return null; // it then is a session like any other
    }
  }

  private static Field parentField() {
    try {
      Field field = SparkSession.class.getDeclaredField("parentSessionState");
      field.setAccessible(true);
      return field;
    } catch (NoSuchFieldException | RuntimeException e) {
      return null;
    }
  }

  /**
   * The catalog of a session, made now if this is its first use; it learns by the active session
   * whose it is.
   */
  public static CatalogPlugin catalog(SparkSession session, String name) {
    return within(session, () -> session.sessionState().catalogManager().catalog(name));
  }

  /** Something that runs as a session, and what it may throw. */
  public interface Work<T, E extends Exception> {
    T run() throws E;
  }

  /** Runs something while a session is the active one of this thread. */
  public static <T, E extends Exception> T within(SparkSession session, Work<T, E> work) throws E {
    Option<SparkSession> before = SparkSession.getActiveSession();
    SparkSession.setActiveSession(session);
    try {
      return work.run();
    } finally {
      if (before.isDefined()) {
        SparkSession.setActiveSession(before.get());
      } else {
        SparkSession.clearActiveSession();
      }
    }
  }

  /** Notes that a session got a grant. */
  public static void granted(String grant, SparkSession session) {
    BY_GRANT.put(grant, new WeakReference<>(session));
  }

  /** The session that got a grant, or null. */
  static SparkSession grantedTo(String grant) {
    WeakReference<SparkSession> found = grant == null ? null : BY_GRANT.get(grant);
    return found == null ? null : found.get();
  }

  private static String random() {
    byte[] bytes = new byte[16];
    RANDOM.nextBytes(bytes);
    return HexFormat.of().formatHex(bytes);
  }

  /** The session of a thread that waits, or null. */
  public static SparkSession session(long number) {
    RequestSession asker = WAITING.get(number);
    return asker == null ? null : asker.session;
  }

  /**
   * Makes the calling thread act for one that waits; returns its session, or null if there is none.
   */
  public static SparkSession enter(long number) {
    RequestSession asker = WAITING.get(number);
    if (asker == null) {
      return null;
    }
    SparkSession.setActiveSession(asker.session);
    asker.session.sparkContext().setLocalProperties((Properties) asker.properties.clone());
    return asker.session;
  }

  /** Makes the calling thread act for itself again. */
  public static void leave(SparkSession session) {
    SparkSession.clearActiveSession();
    SparkContext context = session.sparkContext();
    if (!context.isStopped()) {
      context.setLocalProperties(new Properties());
    }
  }
}
