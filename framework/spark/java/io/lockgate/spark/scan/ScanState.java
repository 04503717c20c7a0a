package io.lockgate.spark.scan;

import io.lockgate.spark.messages.PushedScan;
import io.lockgate.spark.messages.ScanRequest;
import io.lockgate.spark.messages.SelectiveRequest;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.types.StructType;

/**
 * All that decides which rows a scan reads. Scans of equal states read the same rows.
 *
 * <p>A scan itself, so that it can stand in a plan that is only compared: it holds no list of
 * files.
 */
public record ScanState(
    SelectiveRequest request, StructType shown, boolean wholeFiles, LateFilters late)
    implements Scan {
  /** Leaves the text of the statement out of a request: records of access name it. */
  static ScanState of(
      SelectiveRequest request, StructType shown, boolean wholeFiles, LateFilters late) {
    PushedScan pushed = request.pushedScan();
    ScanRequest scan = pushed.scanRequest().withStatement(null);
    return new ScanState(
        request.withPushedScan(pushed.withScanRequest(scan)), shown, wholeFiles, late);
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
