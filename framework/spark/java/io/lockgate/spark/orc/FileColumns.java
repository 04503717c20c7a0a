package io.lockgate.spark.orc;

import java.util.Set;

/** Columns that say where a row lies. No file holds them. */
public final class FileColumns {
  /** The URI of the row's file, as the plan of a scan names it. */
  public static final String PATH = "_FILE_PATH";

  /** How many rows of the file come before the row. */
  public static final String ROW_INDEX = "_ROW_INDEX";

  private static final Set<String> NAMES = Set.of(PATH, ROW_INDEX);

  private FileColumns() {}

  /** Tells whether a column of a scan is one of these, and not a column of the table that has such a name. */
  public static boolean has(String column, org.apache.spark.sql.types.StructType tableSchema) {
    return NAMES.contains(column) && !tableSchema.getFieldIndex(column).isDefined();
  }
}
