package io.lockgate.spark.catalog;

import java.util.regex.Pattern;

/**
 * The classes of Spark that call the catalog, for calls whose purpose the interface does not show.
 */
public final class Callers {
  private static final Pattern NAME_DEFAULT_FORMAT =
      Pattern.compile(".*\\.Data(Frame|Stream)Writer");
  private static final Pattern TO_TABLE =
      Pattern.compile(".*\\.DataStreamWriter|.*\\.pipelines\\.graph\\.DatasetManager.*");
  private static final Pattern ASK_WHETHER_IT_EXISTS =
      Pattern.compile(
          "org\\.apache\\.spark\\.sql\\."
              + "(classic\\.(DataFrameWriter|Catalog|DataStreamWriter)"
              + "|pipelines\\.graph\\.DatasetManager).*");

  private Callers() {}

  /**
   * Tells whether a missing table is no error: Spark's writers, its catalog API and its declarative
   * pipelines load a table to see if it exists.
   */
  public static boolean askWhetherItExists() {
    return are(ASK_WHETHER_IT_EXISTS);
  }

  /**
   * Tells whether `saveAsTable` or `toTable` asks, which name the session's default format where
   * the user names none.
   */
  static boolean nameDefaultFormat() {
    return are(NAME_DEFAULT_FORMAT);
  }

  /**
   * Tells whether `toTable` of a stream asks, or a declarative pipeline, which makes tables before
   * it fills them.
   */
  public static boolean areToTable() {
    return are(TO_TABLE);
  }

  private static boolean are(Pattern classes) {
    return StackWalker.getInstance()
        .walk(frames -> frames.anyMatch(frame -> classes.matcher(frame.getClassName()).matches()));
  }
}
