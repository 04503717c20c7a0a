package io.lockgate.spark.files.masks;

import java.nio.charset.StandardCharsets;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.hive.common.type.HiveDecimal;
import org.apache.hadoop.hive.ql.exec.vector.BytesColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.ColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.Decimal64ColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.DecimalColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.DoubleColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.LongColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.TimestampColumnVector;
import org.apache.orc.TypeDescription;
import org.apache.orc.impl.mask.RedactMaskFactory;

/**
 * ORC's mask {@code redact}: letters and digits become others of their kind, times the beginning of
 * their year.
 *
 * <p>Parameters as in ORC's {@link RedactMaskFactory}, which also masks whole and floating-point
 * numbers here: replacements of ten kinds of characters, of six fields of time, and ranges of
 * positions to leave as they are. {@code _} keeps what is there.
 */
final class RedactMask implements MaskTree.Leaves {
  private static final int KEEP = '_';
  private static final int[] REPLACEMENTS = {
    'X', 'x', '9', '$', '.', KEEP, '\u00AA', '\u0903', '\u00B2', '\u06DD'
  };
  private static final int DIGIT_PLACE = 2;
  private static final int[] TIMES = {-1, 1, 1, 0, 0, 0};

  private final RedactMaskFactory numbers;
  private final int[] replacements = REPLACEMENTS.clone();
  private final int[] times = TIMES.clone();
  private final List<int[]> kept = new ArrayList<>();

  RedactMask(String[] parameters) {
    numbers = new RedactMaskFactory(parameters);
    if (parameters.length > 0) {
      int[] given = parameters[0].codePoints().toArray();
      System.arraycopy(given, 0, replacements, 0, Math.min(given.length, replacements.length));
    }
    if (parameters.length > 1 && !parameters[1].isBlank()) {
      String[] given = parameters[1].split("\\W+");
      for (int i = 0; i < Math.min(given.length, times.length); i++) {
        times[i] = given[i].startsWith("_") ? -1 : Integer.parseInt(given[i]);
      }
    }
    if (parameters.length > 2 && !parameters[2].isBlank()) {
      for (String range : parameters[2].split(",")) {
        String[] ends = range.trim().split(":");
        kept.add(new int[] {Integer.parseInt(ends[0]), Integer.parseInt(ends[1])});
      }
    }
  }

  @Override
  public MaskTree.Leaf of(TypeDescription type) {
    boolean digits = replacements[DIGIT_PLACE] != KEEP;
    return switch (type.getCategory()) {
      case BOOLEAN ->
          (from, to, row) -> longs(to)[row] = digits ? Math.min(digit(), 1) : longs(from)[row];
      case BYTE ->
          (from, to, row) ->
              longs(to)[row] =
                  digits ? (byte) numbers.maskLong(longs(from)[row]) : longs(from)[row];
      case SHORT ->
          (from, to, row) ->
              longs(to)[row] =
                  digits ? (short) numbers.maskLong(longs(from)[row]) : longs(from)[row];
      case INT ->
          (from, to, row) ->
              longs(to)[row] = digits ? (int) numbers.maskLong(longs(from)[row]) : longs(from)[row];
      case LONG ->
          (from, to, row) ->
              longs(to)[row] = digits ? numbers.maskLong(longs(from)[row]) : longs(from)[row];
      case FLOAT, DOUBLE ->
          (from, to, row) ->
              doubles(to)[row] =
                  digits ? numbers.maskDouble(doubles(from)[row]) : doubles(from)[row];
      case DECIMAL -> decimal(type, digits);
      case STRING, CHAR, VARCHAR -> this::text;
      case DATE ->
          (from, to, row) ->
              longs(to)[row] = date(LocalDate.ofEpochDay(longs(from)[row])).toEpochDay();
      case TIMESTAMP, TIMESTAMP_INSTANT -> this::timestamp;
      default -> null;
    };
  }

  private static long[] longs(ColumnVector vector) {
    return ((LongColumnVector) vector).vector;
  }

  private static double[] doubles(ColumnVector vector) {
    return ((DoubleColumnVector) vector).vector;
  }

  /** The replacement of a digit in numbers: one that is no digit leaves 9, as in ORC. */
  private int digit() {
    int value = Character.getNumericValue(replacements[DIGIT_PLACE]);
    return value >= 0 && value <= 9 ? value : 9;
  }

  private boolean isKept(int position, int length) {
    for (int[] range : kept) {
      int first = range[0] >= 0 ? range[0] : length + range[0];
      int last = range[1] >= 0 ? range[1] : length + range[1];
      if (position >= first && position <= last) {
        return true;
      }
    }
    return false;
  }

  private MaskTree.Leaf decimal(TypeDescription type, boolean digits) {
    boolean fraction = type.getPrecision() == type.getScale();
    return (from, to, row) -> {
      HiveDecimal value = ((DecimalColumnVector) from).vector[row].getHiveDecimal();
      HiveDecimal masked = digits ? HiveDecimal.create(digits(value.toString(), fraction)) : value;
      if (to instanceof Decimal64ColumnVector small) {
        small.set(row, masked);
      } else {
        ((DecimalColumnVector) to).set(row, masked);
      }
    };
  }

  /**
   * Masks the digits of a number's text, but for the zero before the point of a type that has no
   * room for another digit.
   */
  private String digits(String number, boolean onlyFraction) {
    StringBuilder masked = new StringBuilder();
    int whole = onlyFraction ? number.indexOf('0') : -1;
    for (int i = 0; i < number.length(); i++) {
      boolean asIs =
          !Character.isDigit(number.charAt(i))
              || i == whole && i <= 1
              || isKept(i, number.length());
      masked.append(asIs ? number.charAt(i) : (char) ('0' + digit()));
    }
    return masked.toString();
  }

  private void text(ColumnVector from, ColumnVector to, int row) {
    BytesColumnVector source = (BytesColumnVector) from;
    String value =
        new String(
            source.vector[row], source.start[row], source.length[row], StandardCharsets.UTF_8);
    int length = kept.isEmpty() ? 0 : value.codePointCount(0, value.length());
    StringBuilder masked = new StringBuilder(value.length());
    for (int at = 0, position = 0; at < value.length(); position++) {
      int character = value.codePointAt(at);
      int replacement = replacements[kind(character)];
      masked.appendCodePoint(
          replacement == KEEP || isKept(position, length) ? character : replacement);
      at += Character.charCount(character);
    }
    byte[] bytes = masked.toString().getBytes(StandardCharsets.UTF_8);
    ((BytesColumnVector) to).setRef(row, bytes, 0, bytes.length);
  }

  /** The place of a character's kind among the replacements. */
  private static int kind(int character) {
    return switch (Character.getType(character)) {
      case Character.UPPERCASE_LETTER -> 0;
      case Character.LOWERCASE_LETTER -> 1;
      case Character.DECIMAL_DIGIT_NUMBER -> DIGIT_PLACE;
      case Character.MATH_SYMBOL,
          Character.CURRENCY_SYMBOL,
          Character.MODIFIER_SYMBOL,
          Character.OTHER_SYMBOL ->
          3;
      case Character.DASH_PUNCTUATION,
          Character.START_PUNCTUATION,
          Character.END_PUNCTUATION,
          Character.CONNECTOR_PUNCTUATION,
          Character.OTHER_PUNCTUATION ->
          4;
      case Character.SPACE_SEPARATOR, Character.LINE_SEPARATOR, Character.PARAGRAPH_SEPARATOR -> 5;
      case Character.TITLECASE_LETTER, Character.MODIFIER_LETTER, Character.OTHER_LETTER -> 6;
      case Character.NON_SPACING_MARK, Character.ENCLOSING_MARK, Character.COMBINING_SPACING_MARK ->
          7;
      case Character.LETTER_NUMBER, Character.OTHER_NUMBER -> 8;
      default -> 9;
    };
  }

  /**
   * Sets year, month and day; a day that the month does not have is one of the next, as in Java's
   * calendar.
   */
  private LocalDate date(LocalDate day) {
    int year = times[0] < 0 ? day.getYear() : times[0];
    int month = times[1] < 0 ? day.getMonthValue() : times[1];
    return LocalDate.of(year, month, 1)
        .plusDays((times[2] < 0 ? day.getDayOfMonth() : times[2]) - 1L);
  }

  private void timestamp(ColumnVector from, ColumnVector to, int row) {
    TimestampColumnVector source = (TimestampColumnVector) from;
    TimestampColumnVector target = (TimestampColumnVector) to;
    boolean untouched = true;
    for (int field : times) {
      untouched &= field < 0;
    }
    if (untouched) {
      target.time[row] = source.time[row];
      target.nanos[row] = source.nanos[row];
      return;
    }
    LocalDateTime value =
        LocalDateTime.ofEpochSecond(Math.floorDiv(source.time[row], 1000L), 0, ZoneOffset.UTC);
    LocalDateTime masked =
        date(value.toLocalDate())
            .atTime(
                times[3] < 0 ? value.getHour() : times[3],
                times[4] < 0 ? value.getMinute() : times[4],
                times[5] < 0 ? value.getSecond() : times[5]);
    target.time[row] = masked.toEpochSecond(ZoneOffset.UTC) * 1000L;
    target.nanos[row] = 0;
  }
}
