package io.lockgate.spark.files;

import java.util.Set;

/**
 * Columns that say where a row lies, or when it was written. Queries may ask for them; no schema
 * has them.
 */
public final class FileColumns {
  /** The URI of the row's file, as the plan of a scan names it. */
  public static final String PATH = "_FILE_PATH";

  /** The number of rows in the file before the row. */
  public static final String ROW_INDEX = "_ROW_INDEX";

  /** The row's partition, spelled {@code day=2024-02-29/hour=3}; empty where there are none. */
  public static final String PARTITION = "_PARTITION";

  /** The number of the row's bucket. */
  public static final String BUCKET = "_BUCKET";

  /** The number that the writer of a table with a primary key gave the row. Files hold it. */
  public static final String SEQUENCE_NUMBER = "_SEQUENCE_NUMBER";

  /** The row's kind, as a number; null in files of tables without keys. */
  public static final String VALUE_KIND = "_VALUE_KIND";

  /** The row's id where the file holds it, of rows that lay in another file before; else null. */
  public static final String ROW_ID = "_ROW_ID";

  /** The id of the file's first row, and the number of the snapshot that added the file. */
  public static final String FIRST_ROW_ID = "_FIRST_ROW_ID";

  public static final String FILE_SEQUENCE = "_FILE_SEQUENCE";

  /** The number and time of the commit whose changes a split tells. */
  public static final String COMMIT_VERSION = "_commit_version";

  public static final String COMMIT_TIMESTAMP = "_commit_timestamp";

  private static final Set<String> NAMES =
      Set.of(
          PATH,
          ROW_INDEX,
          PARTITION,
          BUCKET,
          SEQUENCE_NUMBER,
          VALUE_KIND,
          ROW_ID,
          FIRST_ROW_ID,
          FILE_SEQUENCE);
  private static final Set<String> STORED = Set.of(SEQUENCE_NUMBER, VALUE_KIND, ROW_ID);

  private FileColumns() {}

  /**
   * Tells whether a column of a scan is one of these, and not a column of the table that has such a
   * name.
   */
  public static boolean has(String column, org.apache.spark.sql.types.StructType tableSchema) {
    return NAMES.contains(column) && !tableSchema.getFieldIndex(column).isDefined();
  }

  /** Tells whether files hold such a column, or may. */
  public static boolean isStored(String column) {
    return STORED.contains(column);
  }
}
