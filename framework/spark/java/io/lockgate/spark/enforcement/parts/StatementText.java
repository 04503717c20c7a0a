package io.lockgate.spark.enforcement.parts;

import org.apache.spark.sql.catalyst.catalog.HiveTableRelation;
import org.apache.spark.sql.catalyst.trees.Origin;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** The text of a statement, as the nodes of its plan know it. */
public final class StatementText {
  private static final int LEVELS = 3;

  /** As much of a statement as records may need; a text can have megabytes. */
  public static final int LONGEST = 8_000;

  /** The start of the statement that this thread optimizes, or null. */
  private static final ThreadLocal<String> OPTIMIZED = new ThreadLocal<>();

  private StatementText() {}

  /** Notes the statement that this thread optimizes, of which it will plan the scans next. */
  public static void optimizing(TreeNode<?> plan) {
    OPTIMIZED.set(start(plan, LONGEST));
  }

  /** Notes that this thread analyses another statement: none is optimized yet. */
  public static void analysing() {
    OPTIMIZED.remove();
  }

  /** The start of the statement whose scans this thread plans, or null if none is known. */
  public static String optimized() {
    return OPTIMIZED.get();
  }

  /**
   * Returns the statement as somebody wrote it, or null for one of DataFrames.
   *
   * <p>Some nodes that the parser makes do not know the text, but those below them do. A command
   * that was analysed keeps those inside of it.
   */
  public static String of(TreeNode<?> plan) {
    return find(plan, LEVELS);
  }

  /** Returns at most the first {@code longest} characters of a statement. */
  public static String start(TreeNode<?> plan, int longest) {
    String found = of(plan);
    return found == null || found.length() <= longest ? found : found.substring(0, longest);
  }

  /** Text of a view or of a function is not that of the statement that reads it. */
  private static boolean isOfStatement(Origin origin) {
    return origin.objectType().isEmpty() || origin.objectType().get().equals("EXECUTE IMMEDIATE");
  }

  /** Spark keeps relations of files for later statements, whose text is not that of the first. */
  private static boolean isKept(TreeNode<?> plan) {
    return plan instanceof LogicalRelation || plan instanceof HiveTableRelation;
  }

  private static String find(TreeNode<?> plan, int levels) {
    Origin origin = plan.origin();
    if (origin.sqlText().isDefined() && isOfStatement(origin) && !isKept(plan)) {
      return origin.sqlText().get();
    }
    String found = levels == 0 ? null : find(plan.children(), levels - 1);
    return found != null || levels == 0 ? found : find(plan.innerChildren(), levels - 1);
  }

  private static String find(Seq<?> nodes, int levels) {
    for (Object node : CollectionConverters.asJava(nodes)) {
      String found = node instanceof TreeNode<?> plan ? find(plan, levels) : null;
      if (found != null) {
        return found;
      }
    }
    return null;
  }
}
