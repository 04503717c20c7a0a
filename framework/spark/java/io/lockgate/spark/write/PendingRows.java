package io.lockgate.spark.write;

import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.bridge.Failure;
import io.lockgate.spark.enforcement.parts.DriverLink;
import io.lockgate.spark.messages.Operation;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.SparkEnv;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.DataType;

/**
 * Rows that wait until the driver, which knows of all tasks of a write, says where they go: two
 * tasks never put a new key into two buckets.
 */
abstract class PendingRows {
  private static volatile DriverLink driver;

  /** Takes a row and its bucket. */
  @FunctionalInterface
  interface Taker {
    void take(UnsafeRow row, int bucket) throws IOException;
  }

  private final WriteSpec spec;
  private final int mostRows;
  private final long mostBytes;
  private final List<UnsafeRow> waiting = new ArrayList<>();
  private long bytes;

  /** Asks at once for at most so many rows, and for few more bytes. */
  PendingRows(WriteSpec spec, int mostRows, long mostBytes) {
    this.spec = spec;
    this.mostRows = mostRows;
    this.mostBytes = mostBytes;
  }

  /** Rows of the columns {@code types}; null where nobody need be asked. */
  static PendingRows of(WriteSpec spec, DataType[] types, String attempt) {
    if (spec.movesKeys()) {
      return new PendingLocationRows(spec, types, attempt);
    }
    return spec.asksForBuckets() ? new PendingBucketRows(spec) : null;
  }

  static void reachDriverBy(DriverLink link) {
    driver = link;
  }

  WriteSpec spec() {
    return spec;
  }

  /** Takes a row, which it copies; answers whether as many wait as should be asked for at once. */
  boolean add(UnsafeRow row) {
    waiting.add(row.copy());
    bytes += row.getSizeInBytes();
    return waiting.size() == mostRows || bytes >= mostBytes;
  }

  /** Asks for all rows that wait and passes them on. */
  void answer(Taker taker) throws IOException {
    if (!waiting.isEmpty()) {
      answer(waiting, taker);
    }
    waiting.clear();
    bytes = 0;
  }

  abstract void answer(List<UnsafeRow> rows, Taker taker) throws IOException;

  static <Q, A> A ask(Operation<Q, A> question, Q request) throws IOException {
    DriverLink link = driver;
    if (link == null && !SparkEnv.get().executorId().equals("driver")) {
      throw Failure.ofRow(
          "This executor cannot ask the driver for buckets: start Spark with"
              + " spark.plugins=io.lockgate.spark.LockgatePlugin (lockgate.configure sets it)");
    }
    try {
      return link == null ? Bridge.ask(question, request) : link.ask(question, request);
    } catch (IOException | RuntimeException failure) {
      throw failure;
    } catch (Exception failure) {
      throw new IOException(failure.getMessage(), failure);
    }
  }
}
