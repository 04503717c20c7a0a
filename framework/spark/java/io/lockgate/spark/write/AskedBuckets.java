package io.lockgate.spark.write;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.bridge.Failure;
import io.lockgate.spark.bridge.Values;
import io.lockgate.spark.files.BucketHash;
import io.lockgate.spark.parts.DriverLink;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.SparkEnv;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.DataType;

/**
 * Rows that wait for their buckets, which the driver gives out for all tasks of a write: two tasks
 * never put a new key into two buckets.
 */
final class AskedBuckets {
  private static final int MOST_ROWS = 1 << 16;
  private static final long MOST_BYTES = 32L << 20;
  private static volatile DriverLink driver;

  /** Takes a row and its bucket. */
  @FunctionalInterface
  interface Taker {
    void take(UnsafeRow row, int bucket) throws IOException;
  }

  private record Candidate(UnsafeRow row, int hash) {}

  private final WriteSpec spec;
  private final int before;
  private final BucketHash hash;
  private final List<UnsafeRow> waiting = new ArrayList<>();
  private long bytes;

  /** {@code before} columns of the rows precede the table's own. */
  AskedBuckets(WriteSpec spec, int before) {
    this.spec = spec;
    this.before = before;
    int[] key = spec.trimmedKey();
    int[] ordinals = new int[key.length];
    DataType[] types = new DataType[key.length];
    for (int i = 0; i < key.length; i++) {
      ordinals[i] = before + key[i];
      types[i] = spec.fields().get(key[i]).type();
    }
    this.hash = new BucketHash(ordinals, types);
  }

  static void reachDriverBy(DriverLink link) {
    driver = link;
  }

  /** Takes a row, which it copies; answers whether as many wait as should be asked for at once. */
  boolean add(UnsafeRow row) {
    waiting.add(row.copy());
    bytes += row.getSizeInBytes();
    return waiting.size() == MOST_ROWS || bytes >= MOST_BYTES;
  }

  /** Asks for the buckets of all rows that wait and passes them on. */
  void answer(Taker taker) throws IOException {
    Map<ObjectNode, List<Candidate>> partitions = new LinkedHashMap<>();
    for (UnsafeRow row : waiting) {
      partitions
          .computeIfAbsent(partition(row), absent -> new ArrayList<>())
          .add(new Candidate(row, hash.hash(row)));
    }
    for (Map.Entry<ObjectNode, List<Candidate>> partition : partitions.entrySet()) {
      List<Candidate> rows = partition.getValue();
      ByteBuffer buckets = ask(partition.getKey(), rows);
      for (Candidate each : rows) {
        taker.take(each.row(), buckets.getInt());
      }
    }
    waiting.clear();
    bytes = 0;
  }

  private ObjectNode partition(UnsafeRow row) {
    ObjectNode values = Bridge.object();
    for (int ordinal : spec.partition()) {
      WriteSpec.Field field = spec.fields().get(ordinal);
      values.set(field.name(), Values.toJson(row, before + ordinal, field.type()));
    }
    return values;
  }

  private ByteBuffer ask(ObjectNode partition, List<Candidate> rows) throws IOException {
    ByteBuffer hashes = ByteBuffer.allocate(Integer.BYTES * rows.size());
    rows.forEach(each -> hashes.putInt(each.hash()));
    ObjectNode fields =
        Bridge.object()
            .put("write_id", spec.writeId())
            .put("hashes", Base64.getEncoder().encodeToString(hashes.array()));
    fields.set("partition", partition);
    JsonNode answer = ask(fields);
    return ByteBuffer.wrap(Base64.getDecoder().decode(answer.get("buckets").asText()));
  }

  private static JsonNode ask(ObjectNode fields) throws IOException {
    DriverLink link = driver;
    if (link == null && !SparkEnv.get().executorId().equals("driver")) {
      throw Failure.ofRow(
          "This executor cannot ask the driver for buckets: start Spark with"
              + " spark.plugins=io.lockgate.spark.LockgatePlugin (lockgate.configure sets it)");
    }
    try {
      return link == null
          ? Bridge.ask(BucketsPart.QUESTION, fields)
          : link.ask(BucketsPart.QUESTION, fields);
    } catch (IOException | RuntimeException failure) {
      throw failure;
    } catch (Exception failure) {
      throw new IOException(failure.getMessage(), failure);
    }
  }
}
