package io.lockgate.spark.enforcement;

import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.bridge.Failure;
import java.lang.reflect.Field;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.WeakHashMap;
import java.util.concurrent.Callable;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.expressions.SupportQueryContext;
import org.apache.spark.sql.catalyst.expressions.VariableReference;
import org.apache.spark.sql.catalyst.optimizer.ReplaceCurrentLike;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.CurrentOrigin$;
import org.apache.spark.sql.catalyst.trees.Origin;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.internal.SQLConf;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

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

  private static final int MOST_TEXTS = 1_000;

  private final SparkSession session;

  /** The expressions parsed last, by their text: settings of this session never change. */
  private final Map<String, Expression> parsed =
      Collections.synchronizedMap(
          new LinkedHashMap<>() {
            private static final long serialVersionUID = 1L;

            @Override
            protected boolean removeEldestEntry(Map.Entry<String, Expression> eldest) {
              return size() > MOST_TEXTS;
            }
          });

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

  /** The expression of a text: a copy, since an analyzer leaves marks on what it resolves. */
  Expression parsed(String text) throws Exception {
    Expression found = parsed.get(text);
    if (found == null) {
      found =
          inside(() -> Origins.without(session.sessionState().sqlParser().parseExpression(text)));
      if (found.exists(PlanExpression.class::isInstance)) {
        return found; // its plan would be shared
      }
      parsed.put(text, found);
    }
    return found.clone();
  }

  String zone() {
    return session.sessionState().conf().sessionLocalTimeZone();
  }

  /** The plan, in which the current database and catalog are those of this session. */
  LogicalPlan placed(LogicalPlan plan) {
    return new ReplaceCurrentLike(session.sessionState().catalogManager()).apply(plan);
  }

  /** Does work under the settings of this session, which a parser and an analyzer look up. */
  private <T> T inside(Callable<T> work) throws Exception {
    Option<SparkSession> before = SparkSession.getActiveSession();
    INSIDE.set(true);
    SparkSession.setActiveSession(session);
    try {
      return SQLConf.withExistingConf(session.sessionState().conf(), () -> called(work));
    } finally {
      INSIDE.set(false);
      if (before.isDefined()) {
        SparkSession.setActiveSession(before.get());
      } else {
        SparkSession.clearActiveSession();
      }
    }
  }

  private static <T> T called(Callable<T> work) {
    try {
      return work.call();
    } catch (Exception e) {
      throw Failure.within(e);
    }
  }

  /** The plan, resolved; what is wrong with a policy is not for its user to read. */
  LogicalPlan analyzed(LogicalPlan plan) {
    try {
      return inside(
          () -> {
            LogicalPlan found = session.sessionState().analyzer().execute(plan);
            session.sessionState().analyzer().checkAnalysis(found);
            if (readsVariables(found)) {
              throw new IllegalStateException("a variable of a script, which the user has named");
            }
            return found;
          });
    } catch (Exception e) {
      throw Bridge.failure(
          "A row filter or a mask of a policy does not suit the columns of its table, so nothing is"
              + " read of it: tell those who make the policies");
    }
  }

  /** Spark finds variables of a script that runs in this thread, whatever session analyses. */
  private static boolean readsVariables(LogicalPlan plan) {
    return plan.exists(
        each ->
            CollectionConverters.asJava(each.expressions()).stream()
                .anyMatch(PolicySession::readsVariable));
  }

  private static boolean readsVariable(Expression found) {
    return found.exists(
        each ->
            each instanceof VariableReference
                || each instanceof PlanExpression<?> query
                    && query.plan() instanceof LogicalPlan plan
                    && readsVariables(plan));
  }

  /**
   * The texts that expressions were parsed from, which Spark quotes in messages wherever it
   * computes them, as the optimizer does with constants. Those of a policy are not for its user to
   * read.
   */
  private static final class Origins {
    private static final Field ORIGIN = field();

    private Origins() {}

    /** The expression, which knows its text no more; nor does what is made of it. */
    static Expression without(Expression found) {
      Origin before = CurrentOrigin$.MODULE$.get();
      CurrentOrigin$.MODULE$.reset();
      try {
        clear(found, CurrentOrigin$.MODULE$.get());
      } finally {
        CurrentOrigin$.MODULE$.set(before);
      }
      return found;
    }

    private static void clear(TreeNode<?> node, Origin empty) {
      try {
        ORIGIN.set(node, empty);
      } catch (IllegalAccessException e) {
        throw new IllegalStateException(e);
      }
      if (node instanceof SupportQueryContext quoting) {
        quoting.queryContext_$eq(Option.apply(empty.context()));
      }
      if (node instanceof QueryPlan<?> plan) {
        CollectionConverters.asJava(plan.expressions()).forEach(each -> clear(each, empty));
      } else if (node instanceof PlanExpression<?> query) {
        clear((TreeNode<?>) query.plan(), empty);
      }
      CollectionConverters.asJava(node.children())
          .forEach(child -> clear((TreeNode<?>) child, empty));
    }

    private static Field field() {
      try {
        Field found = TreeNode.class.getDeclaredField("origin");
        found.setAccessible(true);
        return found;
      } catch (NoSuchFieldException e) {
        throw new IllegalStateException(e);
      }
    }
  }
}
