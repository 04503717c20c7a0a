package io.lockgate.spark.lookup;

import io.lockgate.spark.bridge.RequestSessions;
import java.security.SecureRandom;
import java.util.HexFormat;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;

/**
 * The lookup functions of joins that are being planned, by unguessable names.
 *
 * <p>A function opens a cache on the disk, so one is found only by the session that offered it (and
 * its clones), and only until its join is planned: a plan keeps the function, not the name.
 */
public final class OfferedLookups {
  private static final String PREFIX = "lookup_";
  private static final SecureRandom RANDOM = new SecureRandom();
  private static final Map<String, Offer> OFFERS = new ConcurrentHashMap<>();

  private record Offer(String session, String how) {}

  private OfferedLookups() {}

  /** Offers a function to a session and answers its name; {@link #withdraw} ends the offer. */
  public static String offer(SparkSession session, String how) {
    byte[] bytes = new byte[16];
    RANDOM.nextBytes(bytes);
    String name = PREFIX + HexFormat.of().formatHex(bytes);
    OFFERS.put(name, new Offer(RequestSessions.nameOf(session), how));
    return name;
  }

  public static void withdraw(String name) {
    OFFERS.remove(name);
  }

  /** The function of this name if it is offered to the session, else null. */
  public static UnboundFunction find(SparkSession session, String name) {
    Offer offer = OFFERS.get(name);
    return offer == null || !offer.session.equals(RequestSessions.nameOf(session))
        ? null
        : new LookupFunction(offer.how);
  }
}
