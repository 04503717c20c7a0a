package io.lockgate.spark.write;

import com.fasterxml.jackson.databind.JsonNode;
import io.lockgate.spark.bridge.Values;
import io.lockgate.spark.files.BucketHash;
import io.lockgate.spark.messages.AssignRequest;
import io.lockgate.spark.messages.Operations;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.DataType;

/** Rows that wait for their buckets, which the hashes of their keys decide. */
final class PendingBucketRows extends PendingRows {
  private static final int MOST_ROWS = 1 << 16;
  private static final long MOST_BYTES = 32L << 20;
  private static final int BEFORE = UpsertWriter.BEFORE;

  private record Candidate(UnsafeRow row, int hash) {}

  private final BucketHash hash;

  PendingBucketRows(WriteSpec spec) {
    super(spec, MOST_ROWS, MOST_BYTES);
    int[] key = spec.trimmedKey();
    int[] ordinals = new int[key.length];
    DataType[] types = new DataType[key.length];
    for (int i = 0; i < key.length; i++) {
      ordinals[i] = BEFORE + key[i];
      types[i] = spec.fields().get(key[i]).type();
    }
    this.hash = new BucketHash(ordinals, types);
  }

  @Override
  void answer(List<UnsafeRow> waiting, Taker taker) throws IOException {
    Map<Map<String, JsonNode>, List<Candidate>> partitions = new LinkedHashMap<>();
    for (UnsafeRow row : waiting) {
      partitions
          .computeIfAbsent(partition(row), absent -> new ArrayList<>())
          .add(new Candidate(row, hash.hash(row)));
    }
    for (Map.Entry<Map<String, JsonNode>, List<Candidate>> partition : partitions.entrySet()) {
      List<Candidate> rows = partition.getValue();
      ByteBuffer buckets = ask(partition.getKey(), rows);
      for (Candidate each : rows) {
        taker.take(each.row(), buckets.getInt());
      }
    }
  }

  private Map<String, JsonNode> partition(UnsafeRow row) {
    Map<String, JsonNode> values = new LinkedHashMap<>();
    for (int ordinal : spec().partition()) {
      WriteSpec.Field field = spec().fields().get(ordinal);
      values.put(field.name(), Values.toJson(row, BEFORE + ordinal, field.type()));
    }
    return values;
  }

  private ByteBuffer ask(Map<String, JsonNode> partition, List<Candidate> rows) throws IOException {
    ByteBuffer hashes = ByteBuffer.allocate(Integer.BYTES * rows.size());
    rows.forEach(each -> hashes.putInt(each.hash()));
    String sent = Base64.getEncoder().encodeToString(hashes.array());
    AssignRequest request = new AssignRequest(spec().writeId(), partition, sent);
    String buckets = ask(Operations.WRITE_ASSIGN, request).buckets();
    return ByteBuffer.wrap(Base64.getDecoder().decode(buckets));
  }
}
