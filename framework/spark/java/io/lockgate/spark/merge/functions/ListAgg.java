package io.lockgate.spark.merge.functions;

import io.lockgate.spark.merge.MergePlan;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.Set;
import java.util.regex.Pattern;
import org.apache.spark.unsafe.types.UTF8String;

/** Concatenates texts; blank ones are ignored. */
final class ListAgg extends ColumnFunction {
  private final UTF8String delimiter;
  private final Pattern split;

  ListAgg(MergePlan.Column plan) {
    super(plan);
    this.delimiter = UTF8String.fromString(plan.delimiter());
    this.split = Pattern.compile(Pattern.quote(plan.delimiter()));
  }

  @Override
  public Object add(Object value, Object newer) {
    if (isBlank(newer)) {
      return value;
    } else if (isBlank(value)) {
      return newer;
    }
    UTF8String older = (UTF8String) value;
    return plan().distinct()
        ? distinct(older.toString(), newer.toString())
        : UTF8String.concat(older, delimiter, (UTF8String) newer);
  }

  private UTF8String distinct(String older, String newer) {
    Set<String> seen = new LinkedHashSet<>(Arrays.asList(split.split(older, -1)));
    StringBuilder joined = new StringBuilder(older);
    for (String part : split.split(newer, -1)) {
      if (!isBlank(part) && seen.add(part)) {
        joined.append(plan().delimiter()).append(part);
      }
    }
    return UTF8String.fromString(joined.toString());
  }

  private static boolean isBlank(Object text) {
    return text == null || text.toString().chars().allMatch(Character::isWhitespace);
  }
}
