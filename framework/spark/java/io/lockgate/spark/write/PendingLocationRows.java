package io.lockgate.spark.write;

import com.fasterxml.jackson.databind.JsonNode;
import io.lockgate.spark.bridge.Values;
import io.lockgate.spark.messages.LocateAnswer;
import io.lockgate.spark.messages.LocateRequest;
import io.lockgate.spark.messages.Operations;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.JoinedRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.DataType;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Rows of keys that may move between partitions, which wait for their partition and bucket. The row
 * of one key may become two: a deletion in the partition that the key leaves, and itself.
 */
final class PendingLocationRows extends PendingRows {
  // A question to the driver has at most 4 MiB.
  private static final int MOST_ROWS = 1 << 14;
  private static final long MOST_BYTES = 1L << 20;
  private static final int BEFORE = UpsertWriter.BEFORE;
  private static final int GIVEN = -1;

  private final String attempt;
  private final int[] asked;
  private final UnsafeProjection moved;
  private final JoinedRow joined = new JoinedRow();

  PendingLocationRows(WriteSpec spec, DataType[] types, String attempt) {
    super(spec, MOST_ROWS, MOST_BYTES);
    this.attempt = attempt;
    this.asked =
        IntStream.concat(IntStream.of(spec.primaryKey()), IntStream.of(spec.partition()))
            .distinct()
            .toArray();
    this.moved = moved(spec.partition(), types);
  }

  /** Takes partition columns from a row of them, all others from the row that follows. */
  private static UnsafeProjection moved(int[] partition, DataType[] types) {
    List<Expression> columns = new ArrayList<>();
    for (int i = 0; i < types.length; i++) {
      columns.add(new BoundReference(partition.length + i, types[i], true));
    }
    for (int i = 0; i < partition.length; i++) {
      int at = BEFORE + partition[i];
      columns.set(at, new BoundReference(i, types[at], true));
    }
    return UnsafeProjection.create(
        CollectionConverters.asScala(columns).toSeq(),
        CollectionConverters.asScala(List.<Attribute>of()).toSeq());
  }

  @Override
  void answer(List<UnsafeRow> rows, Taker taker) throws IOException {
    LocateAnswer answer = ask(Operations.WRITE_LOCATE, question(rows));
    InternalRow[] partitions = partitions(answer.partitions());
    ByteBuffer found = ByteBuffer.wrap(Base64.getDecoder().decode(answer.rows()));
    while (found.hasRemaining()) {
      UnsafeRow row = rows.get(found.getInt());
      byte kind = (byte) found.getInt();
      int partition = found.getInt();
      int bucket = found.getInt();
      // One row may be taken twice, as a deletion and as itself.
      UnsafeRow taken =
          partition == GIVEN ? row.copy() : moved.apply(joined.apply(partitions[partition], row));
      taken.setByte(UpsertWriter.KIND, kind);
      taker.take(taken, bucket);
    }
  }

  private LocateRequest question(List<UnsafeRow> rows) {
    Map<String, List<JsonNode>> columns = new LinkedHashMap<>();
    for (int ordinal : asked) {
      WriteSpec.Field field = spec().fields().get(ordinal);
      List<JsonNode> values = new ArrayList<>(rows.size());
      columns.put(field.name(), values);
      rows.forEach(row -> values.add(Values.toJson(row, BEFORE + ordinal, field.type())));
    }
    byte[] kinds = new byte[rows.size()];
    for (int i = 0; i < kinds.length; i++) {
      kinds[i] = rows.get(i).getByte(UpsertWriter.KIND);
    }
    String sent = Base64.getEncoder().encodeToString(kinds);
    return new LocateRequest(spec().writeId(), attempt, columns, sent);
  }

  private InternalRow[] partitions(List<Map<String, JsonNode>> given) {
    InternalRow[] rows = new InternalRow[given.size()];
    int[] partition = spec().partition();
    for (int i = 0; i < rows.length; i++) {
      Object[] values = new Object[partition.length];
      for (int at = 0; at < values.length; at++) {
        WriteSpec.Field field = spec().fields().get(partition[at]);
        values[at] = Values.fromJson(given.get(i).get(field.name()), field.type());
      }
      rows[i] = new GenericInternalRow(values);
    }
    return rows;
  }
}
