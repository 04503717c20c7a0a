package io.lockgate.spark.rules.results;

import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.plans.logical.OneRowRelation;

/** Keeps more than fits, and checks what is left. */
public final class ResultsCheck {
  private static final long MOST = 100 << 10;

  private ResultsCheck() {}

  /** Throws an error that says which bound does not hold. */
  public static void main(String[] arguments) {
    Results results = new Results();
    for (int user = 0; user < 3; user++) {
      results.keep(key(user), rows(1 << 10), MOST);
    }
    results.find(key(0));
    for (int user = 3; user < 6; user++) {
      results.keep(key(user), rows(1 << 10), MOST);
    }
    check(results.bytes() <= MOST, "all rows take " + results.bytes() + " bytes");
    check(results.size() == 5, results.size() + " results are left");
    check(results.find(key(0)).isPresent(), "what was used last is gone");
    check(results.find(key(1)).isEmpty(), "what nobody used longest is still there");
    results.keep(key(9), rows((int) MOST), MOST);
    check(results.find(key(9)).isEmpty(), "a result that is too large is kept");
    results.keep(key(8), new InternalRow[] {InternalRow.empty()}, MOST);
    check(results.find(key(8)).isEmpty(), "rows that are no bytes are kept");
    long before = results.bytes();
    results.keep(key(5), rows(1 << 10), MOST);
    check(results.bytes() == before, "a result that is kept twice counts twice");
    check(!List.of(key(1)).toString().contains("secret"), "a key shows its settings");
  }

  private static ResultKey key(int user) {
    return new ResultKey(new OneRowRelation(), Map.of("a", "secret"), "user" + user, "UTC", "en");
  }

  private static InternalRow[] rows(int bytes) {
    UnsafeRow row = new UnsafeRow(1);
    row.pointTo(new byte[bytes], bytes);
    return new InternalRow[] {row};
  }

  private static void check(boolean holds, String message) {
    if (!holds) {
      throw new IllegalStateException(message);
    }
  }
}
