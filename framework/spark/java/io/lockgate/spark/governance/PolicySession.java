package io.lockgate.spark.governance;

import io.lockgate.spark.bridge.Bridge;
import java.util.Collections;
import java.util.Map;
import java.util.WeakHashMap;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import scala.Option;

/**
 * The session in which expressions of policies are analysed, one for each application.
 *
 * <p>No user has it, so that no function, view or setting of a user's session means something in a
 * policy.
 */
final class PolicySession {
  private static final Map<SparkContext, PolicySession> KNOWN =
      Collections.synchronizedMap(new WeakHashMap<>());
  private static final ThreadLocal<Boolean> INSIDE = ThreadLocal.withInitial(() -> false);

  private final SparkSession session;

  private PolicySession(SparkSession session) {
    this.session = session;
  }

  static PolicySession of(SparkSession session) {
    return KNOWN.computeIfAbsent(
        session.sparkContext(), context -> new PolicySession(session.newSession()));
  }

  /** Tells whether this thread analyses an expression of a policy. */
  static boolean isInside() {
    return INSIDE.get();
  }

  Expression parsed(String text) throws Exception {
    return Origins.without(session.sessionState().sqlParser().parseExpression(text));
  }

  /** The plan, resolved; what is wrong with a policy is not for its user to read. */
  LogicalPlan analyzed(LogicalPlan plan) {
    Option<SparkSession> before = SparkSession.getActiveSession();
    INSIDE.set(true);
    SparkSession.setActiveSession(session);
    try {
      LogicalPlan found = session.sessionState().analyzer().execute(plan);
      session.sessionState().analyzer().checkAnalysis(found);
      return found;
    } catch (Exception e) {
      throw Bridge.failure(
          "A row filter or a mask of a policy does not suit the columns of its table, so nothing is"
              + " read of it: tell those who make the policies");
    } finally {
      INSIDE.set(false);
      if (before.isDefined()) {
        SparkSession.setActiveSession(before.get());
      } else {
        SparkSession.clearActiveSession();
      }
    }
  }
}
