package io.lockgate.spark.merge;

import io.lockgate.spark.files.batches.BatchSource;
import java.io.Closeable;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * Merges inputs that are sorted by key into one row a key, as a rule says for keys that have
 * several; a row that is alone with its key stays as it is. Keys whose row is a deletion vanish.
 *
 * <p>Rows are picked where they lie: a page of an input stays as it is while rows of it are in the
 * batch that was answered last. Memory: two pages for each input and a few more.
 */
public final class RowMerge implements BatchSource {
  // A batch ends early where its rows are strewn over many pages, as many of them as this on top of
  // those of the inputs.
  private static final int SPARE_PAGES = 16;

  /** A sorted input. */
  public interface Input extends Closeable {
    /** The next rows, at least one, in a page that nobody uses; null at the end. */
    MergePage next() throws IOException;

    /** Takes back a page of this input, to be filled again. */
    void giveBack(MergePage page);
  }

  /** The position of an input. */
  private static final class Cursor {
    private final Input input;
    private final int order;
    private MergePage page;
    private int row;
    private long prefix;

    Cursor(Input input, int order) {
      this.input = input;
      this.order = order;
    }

    void moveTo(int next) {
      row = next;
      prefix = page.prefix(next);
    }
  }

  /** A page that its input has passed. */
  private record RetiredPage(Input input, MergePage page) {}

  private final RowOrder keys;
  private final RowOrder ages;
  private final MergeRule rule;
  private final RowVersions key = new RowVersions();
  private final MergeBatch batch;
  private final List<Input> inputs;
  private final Cursor[] heap;
  private final List<RetiredPage> passed = new ArrayList<>();
  private final boolean keepsAlone;
  private int size;

  /**
   * {@code ages} orders rows of one key from old to new; {@code keepsAlone}: a deletion that is
   * alone with its key stays, else it vanishes.
   */
  public RowMerge(
      List<? extends Input> inputs,
      RowOrder keys,
      RowOrder ages,
      MergeRule rule,
      MergeBatch batch,
      boolean keepsAlone)
      throws IOException {
    this.keepsAlone = keepsAlone;
    this.inputs = new ArrayList<>(inputs);
    this.keys = keys;
    this.ages = ages;
    this.rule = rule;
    this.batch = batch;
    this.heap = new Cursor[inputs.size()];
    for (int i = 0; i < inputs.size(); i++) {
      Cursor cursor = new Cursor(inputs.get(i), i);
      if (turn(cursor)) {
        heap[size] = cursor;
        siftUp(size++);
      }
    }
  }

  @Override
  public boolean nextBatch() throws IOException {
    batch.clear();
    giveBackUnused();
    while (size > 0 && !batch.isFull() && (batch.size() == 0 || passed.size() < SPARE_PAGES)) {
      if (!takePairs() && !takeRun()) {
        takeKey();
      }
    }
    return batch.size() > 0;
  }

  @Override
  public ColumnarBatch batch() {
    return batch.output();
  }

  /**
   * Takes the keys of two pages whose numbers are their keys, as long as each page has another row
   * and each key at most one row in both.
   */
  private boolean takePairs() {
    if (size != 2 || !heap[0].page.exact() || !heap[1].page.exact()) {
      return false;
    }
    // The order of equal ages is that of the inputs.
    Cursor older = heap[heap[0].order < heap[1].order ? 0 : 1];
    Cursor newer = older == heap[0] ? heap[1] : heap[0];
    MergePage left = older.page;
    MergePage right = newer.page;
    long[] lefts = left.prefixes();
    long[] rights = right.prefixes();
    int i = older.row;
    int j = newer.row;
    while (i + 1 < left.rows() && j + 1 < right.rows() && !batch.isFull()) {
      long one = lefts[i];
      long other = rights[j];
      if (one <= other && lefts[i + 1] == one || other <= one && rights[j + 1] == other) {
        break;
      }
      if (one == other) {
        boolean inOrder = ages.compare(left, i, right, j) <= 0;
        key.add(inOrder ? left : right, inOrder ? i : j);
        key.add(inOrder ? right : left, inOrder ? j : i);
        rule.take(key, batch);
        key.clear();
        i++;
        j++;
      } else if (one < other) {
        takeAlone(left, i++);
      } else {
        takeAlone(right, j++);
      }
    }
    boolean taken = i > older.row || j > newer.row;
    older.moveTo(i);
    newer.moveTo(j);
    siftDown();
    return taken;
  }

  private void takeAlone(MergePage page, int row) {
    if (keepsAlone || !page.isGone(row)) {
      batch.pick(page, row);
    }
  }

  /**
   * Takes the rows of the first page that come before those of all other inputs and have each a key
   * of its own.
   */
  private boolean takeRun() {
    Cursor first = heap[0];
    MergePage page = first.page;
    long[] prefixes = page.prefixes();
    boolean alone = size == 1;
    long limit = alone ? 0 : size == 2 ? heap[1].prefix : Math.min(heap[1].prefix, heap[2].prefix);
    // The last row of a page may have the key of the next page's first.
    int most = Math.min(page.rows() - 1, first.row + batch.room());
    int end = first.row;
    while (end < most && prefixes[end] < prefixes[end + 1] && (alone || prefixes[end] < limit)) {
      end++;
    }
    if (end == first.row) {
      return false;
    }
    batch.pickAll(page, first.row, end, keepsAlone);
    first.moveTo(end);
    siftDown();
    return true;
  }

  /** Takes what the rows of the first key become. */
  private void takeKey() throws IOException {
    key.add(heap[0].page, heap[0].row);
    advance();
    while (size > 0 && keys.compare(key.page(0), key.row(0), heap[0].page, heap[0].row) == 0) {
      key.add(heap[0].page, heap[0].row);
      advance();
    }
    if (key.size() > 1) {
      key.sort(ages);
      rule.take(key, batch);
    } else {
      takeAlone(key.page(0), key.row(0));
    }
    key.clear();
  }

  private void advance() throws IOException {
    Cursor first = heap[0];
    if (first.row + 1 < first.page.rows()) {
      first.moveTo(first.row + 1);
    } else if (!turn(first)) {
      heap[0] = heap[--size];
      heap[size] = null;
    }
    siftDown();
  }

  /** Moves to the next page of an input; false at its end. */
  private boolean turn(Cursor cursor) throws IOException {
    if (cursor.page != null) {
      passed.add(new RetiredPage(cursor.input, cursor.page));
      giveBackUnused();
    }
    cursor.page = cursor.input.next();
    if (cursor.page == null) {
      return false;
    }
    cursor.moveTo(0);
    return true;
  }

  private void giveBackUnused() {
    for (Iterator<RetiredPage> pages = passed.iterator(); pages.hasNext(); ) {
      RetiredPage one = pages.next();
      if (!one.page().isPicked() && !key.holds(one.page())) {
        one.input().giveBack(one.page());
        pages.remove();
      }
    }
  }

  private boolean before(Cursor left, Cursor right) {
    int order = Long.compare(left.prefix, right.prefix);
    if (order == 0) {
      order = keys.compare(left.page, left.row, right.page, right.row);
    }
    if (order == 0) {
      order = ages.compare(left.page, left.row, right.page, right.row);
    }
    return order == 0 ? left.order < right.order : order < 0;
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
