package io.lockgate.spark.orc;

import java.io.Closeable;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import scala.math.Ordering;

/**
 * Merges inputs that are sorted by key into one row a key: the newest by age, or the one of the later input where
 * they are equal; keys whose newest row is a deletion vanish.
 *
 * <p>Memory: the current batch of each input.
 */
final class KeyMerge implements Closeable {
  private static final byte UPDATE_BEFORE = 1;
  private static final byte DELETE = 3;

  /** A sorted input. Its row may be held while the input moves on. */
  interface Input extends Closeable {
    /** Moves to the next row; a held row stays valid. */
    boolean next() throws IOException;

    InternalRow current();

    /** Keeps the current row, across {@link #next()}, until another one is held. */
    void hold();

    /** The row that was held last. */
    InternalRow held();
  }

  private record Cursor(Input input, int order) {}

  private final Ordering<InternalRow> keys;
  private final Comparator<InternalRow> ages;
  private final int kind;
  private final List<Input> inputs;
  private final Cursor[] heap;
  private int size;
  private Input winner;

  /** {@code keys} orders whole input rows by their key, {@code ages} from old to new; {@code kind} is a position in a row. */
  KeyMerge(List<? extends Input> inputs, Ordering<InternalRow> keys, Comparator<InternalRow> ages, int kind)
      throws IOException {
    this.inputs = new ArrayList<>(inputs);
    this.keys = keys;
    this.ages = ages;
    this.kind = kind;
    this.heap = new Cursor[inputs.size()];
    for (int i = 0; i < inputs.size(); i++) {
      if (inputs.get(i).next()) {
        heap[size] = new Cursor(inputs.get(i), i);
        siftUp(size++);
      }
    }
  }

  /** Moves to the next key that has a row. */
  boolean next() throws IOException {
    while (size > 0) {
      winner = take();
      while (size > 0 && keys.compare(winner.held(), heap[0].input().current()) == 0) {
        if (ages.compare(heap[0].input().current(), winner.held()) >= 0) {
          winner = take();
        } else {
          advance();
        }
      }
      byte change = winner.held().getByte(kind);
      if (change != UPDATE_BEFORE && change != DELETE) {
        return true;
      }
    }
    winner = null;
    return false;
  }

  /** The newest row of the current key, valid until {@link #next()}. */
  InternalRow row() {
    return winner.held();
  }

  private Input take() throws IOException {
    Input input = heap[0].input();
    input.hold();
    advance();
    return input;
  }

  private void advance() throws IOException {
    if (!heap[0].input().next()) {
      heap[0] = heap[--size];
      heap[size] = null;
    }
    siftDown();
  }

  private boolean before(Cursor left, Cursor right) {
    InternalRow leftRow = left.input().current();
    InternalRow rightRow = right.input().current();
    int order = keys.compare(leftRow, rightRow);
    if (order == 0) {
      order = ages.compare(leftRow, rightRow);
    }
    return order == 0 ? left.order() < right.order() : order < 0;
  }

  private void siftUp(int from) {
    int at = from;
    while (at > 0) {
      int parent = (at - 1) / 2;
      if (!before(heap[at], heap[parent])) {
        return;
      }
      swap(at, parent);
      at = parent;
    }
  }

  private void siftDown() {
    int at = 0;
    while (true) {
      int child = 2 * at + 1;
      if (child >= size) {
        return;
      }
      if (child + 1 < size && before(heap[child + 1], heap[child])) {
        child++;
      }
      if (!before(heap[child], heap[at])) {
        return;
      }
      swap(at, child);
      at = child;
    }
  }

  private void swap(int left, int right) {
    Cursor cursor = heap[left];
    heap[left] = heap[right];
    heap[right] = cursor;
  }

  @Override
  public void close() throws IOException {
    IOException first = null;
    for (Input input : inputs) {
      try {
        input.close();
      } catch (IOException failure) {
        first = first == null ? failure : first;
      }
    }
    if (first != null) {
      throw first;
    }
  }
}
