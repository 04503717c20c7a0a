package io.lockgate.spark.scan;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lockgate.spark.bridge.Bridge;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.types.StructType;

/**
 * All that decides which rows a scan reads. Scans of equal states read the same rows.
 *
 * <p>A scan itself, so that it can stand in a plan that is only compared: it holds no list of
 * files.
 */
public record ScanState(ObjectNode request, StructType shown, boolean wholeFiles, LateFilters late)
    implements Scan {
  /** Leaves the text of the statement out of a request: records of access name it. */
  static ScanState of(ObjectNode request, StructType shown, boolean wholeFiles, LateFilters late) {
    ObjectNode kept = Bridge.object();
    kept.setAll(request);
    kept.remove("statement");
    return new ScanState(kept, shown, wholeFiles, late);
  }

  @Override
  public StructType readSchema() {
    return shown;
  }

  /** Names no filter, whose literals may be secret. */
  @Override
  public String toString() {
    return "the state of a scan";
  }
}
