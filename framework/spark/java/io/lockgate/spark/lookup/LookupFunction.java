package io.lockgate.spark.lookup;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.files.BoundScalar;
import java.nio.file.Path;
import java.util.Arrays;
import org.apache.spark.SparkContext;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.functions.BoundFunction;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.TaskCompletionListener;

/**
 * {@code lookup(pin, mark, key)}: the answer of a cache to a key, inside the JVM of the task. Joins
 * plan with it where the cache is in mapped files; users get it by no name ({@link
 * OfferedLookups}).
 *
 * <p>{@code pin} is the batch's snapshot and token, {@code mark} what tells the snapshot from
 * others of its number, {@code key} a struct. Which cache answers, with what, and how its rows are
 * kept, is no argument: the text of a statement must not name a folder.
 */
public final class LookupFunction implements UnboundFunction {
  private static final String NAME = "lookup";
  private static final int KEY = 2;
  private static final long NO_PIN = -1;

  /** As {@code pack} of {@code lookup/driver/batch_counts.py} combines the two. */
  private static final int SNAPSHOT_BITS = 40;

  /** One in so many lookups is timed, since reading the clock takes as long as some of them. */
  private static final int TIMED = 64;

  private final String how;

  /** {@code how} is a JSON text of {@code lookup/join/jvm.py}. */
  LookupFunction(String how) {
    this.how = how;
  }

  @Override
  public BoundFunction bind(StructType input) {
    if (input.length() != KEY + 1 || !(input.fields()[KEY].dataType() instanceof StructType)) {
      throw new UnsupportedOperationException("lookup takes pin, mark and a struct of keys");
    }
    return new Bound(how, input, LookupCounts.of(SparkContext.getOrCreate()));
  }

  @Override
  public String description() {
    return "lookup(pin, mark, key): the answer of a lookup cache to a key";
  }

  @Override
  public String name() {
    return NAME;
  }

  /** Public, as the code that Spark generates calls it. */
  public static final class Bound extends BoundScalar<Object> {
    private final String how;
    private final DataType answer;
    private final LookupCounts counts;
    private transient TaskLookup lookup;

    Bound(String how, StructType input, LookupCounts counts) {
      super(NAME, input);
      this.how = how;
      this.answer = DataType.fromJson(TaskLookup.parse(how).get("answer").toString());
      this.counts = counts;
    }

    @Override
    public DataType resultType() {
      return answer;
    }

    /** Or Spark would ask once for each column that is made of the answer. */
    @Override
    public boolean isDeterministic() {
      return false;
    }

    /** Returns what a plan shows. */
    @Override
    public String toString() {
      return canonicalName();
    }

    /** Answers one row; Spark finds the method by its name, and compiles a call of it. */
    public Object invoke(long pin, long mark, InternalRow key) {
      if (lookup == null) {
        lookup = new TaskLookup(how, answer, (StructType) types[KEY], counts);
      }
      return lookup.answer(pin, mark, key);
    }
  }

  /** The lookups of one task. */
  private static final class TaskLookup {
    private final Path cache;
    private final double waitSeconds;
    private final boolean many;
    private final KeyEncoder key;
    private final RowDecoder decoder;
    private final LookupCounts counts;
    private final Value value = new Value();
    private final boolean inTask;
    private long pin = NO_PIN;
    private States.Lease lease;
    private boolean ended;
    private long rows;
    private long matched;
    private long timedNanos;
    private long timedRows;

    TaskLookup(String how, DataType answer, StructType keys, LookupCounts counts) {
      JsonNode options = parse(how);
      String location = options.get("location").asText();
      this.cache =
          options.get("everywhere").asBoolean() ? CachePaths.local(location) : Path.of(location);
      this.waitSeconds = options.get("wait_seconds").asDouble();
      this.many = answer instanceof ArrayType;
      DataType[] keyTypes =
          Arrays.stream(keys.fields()).map(StructField::dataType).toArray(DataType[]::new);
      this.key = new KeyEncoder(new RowShape(options.get("keys")), keyTypes);
      int[] answered = new int[options.get("answered").size()];
      Arrays.setAll(answered, i -> options.get("answered").get(i).asInt());
      DataType struct = answer instanceof ArrayType array ? array.elementType() : answer;
      this.decoder =
          new RowDecoder(new RowShape(options.get("columns")), answered, (StructType) struct);
      this.counts = counts;
      TaskContext task = TaskContext.get();
      this.inTask = task != null;
      if (inTask) {
        task.addTaskCompletionListener((TaskCompletionListener) ignored -> end());
      }
    }

    /** Answers one row; the lock keeps the state open while another thread ends the task. */
    synchronized Object answer(long wanted, long mark, InternalRow row) {
      if (ended) {
        throw new IllegalStateException("the task has ended");
      }
      if (wanted != pin) {
        turnTo(wanted, mark);
      }
      boolean timed = rows % TIMED == 0;
      long started = timed ? System.nanoTime() : 0;
      Object found = find(row);
      if (timed) {
        timedNanos += System.nanoTime() - started;
        timedRows++;
      }
      rows++;
      matched += found == null ? 0 : 1;
      if (!inTask) {
        turnTo(NO_PIN, 0);
      }
      return found;
    }

    private Object find(InternalRow row) {
      if (lease == null || !key.encode(row) || !lease.state.find(key, value)) {
        return null;
      }
      return many ? decoder.rows(value) : decoder.row(value.base, value.offset);
    }

    private void turnTo(long newPin, long mark) {
      release();
      long snapshot = newPin & (1L << SNAPSHOT_BITS) - 1;
      if (newPin != NO_PIN && snapshot != 0) { // 0: the table has none yet, and so no rows
        lease = States.acquire(cache, snapshot, mark, waitSeconds);
      }
      pin = newPin;
    }

    private void release() {
      if (lease != null) {
        States.release(lease);
        lease = null;
      }
      if (rows > 0) {
        counts.add(
            new long[] {pin >>> SNAPSHOT_BITS, rows, matched, timedNanos * rows / timedRows});
        rows = 0;
        matched = 0;
        timedNanos = 0;
        timedRows = 0;
      }
      pin = NO_PIN;
    }

    private synchronized void end() {
      ended = true;
      release();
    }

    private static JsonNode parse(String how) {
      try {
        return Bridge.JSON.readTree(how);
      } catch (JsonProcessingException e) {
        throw new IllegalArgumentException(how, e);
      }
    }
  }
}
