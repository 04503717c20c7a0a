package io.lockgate.spark.files;

import com.fasterxml.jackson.databind.JsonNode;
import java.math.BigDecimal;
import java.math.MathContext;
import java.math.RoundingMode;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.function.Predicate;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;

/** The folders of partitions: {@code name=value}, escaped as Paimon and Hive escape them. */
public final class PartitionPaths {
  /** With so many digits every float, or every double, reads back. */
  private static final int FLOAT_DIGITS = 9;

  private static final int DOUBLE_DIGITS = 17;
  private static final DateTimeFormatter SECONDS =
      DateTimeFormatter.ofPattern("uuuu-MM-dd HH:mm:ss");
  private static final String ESCAPED = "\"#%'*/:=?\\\u007F{}[]^";

  private PartitionPaths() {}

  /**
   * The folder of one partition column; {@code legacy}, Paimon's default, names dates by their day
   * number. {@code precision} is that of a timestamp in the table, of which Spark's type knows
   * nothing.
   */
  public static String folder(
      String name,
      JsonNode value,
      DataType type,
      int precision,
      String defaultName,
      boolean legacy) {
    String text = value.isNull() ? "" : text(value, type, precision, legacy);
    return escape(name) + "=" + escape(text.isBlank() ? defaultName : text);
  }

  private static String text(JsonNode value, DataType type, int precision, boolean legacy) {
    if (type instanceof TimestampType || type instanceof TimestampNTZType) {
      long micros = value.asLong();
      int nanos = (int) Math.floorMod(micros, 1_000_000L) * 1000;
      LocalDateTime clock =
          LocalDateTime.ofEpochSecond(Math.floorDiv(micros, 1_000_000L), nanos, ZoneOffset.UTC);
      return legacy ? clock.toString() : timestampText(clock, precision);
    } else if (type instanceof DateType && !legacy) {
      return LocalDate.ofEpochDay(value.asLong()).toString();
    } else if (type instanceof FloatType) {
      float number = Float.parseFloat(value.asText());
      return floatText(number, FLOAT_DIGITS, digits -> digits.floatValue() == number);
    } else if (type instanceof DoubleType) {
      double number = Double.parseDouble(value.asText());
      return floatText(number, DOUBLE_DIGITS, digits -> digits.doubleValue() == number);
    } else if (type instanceof BinaryType) {
      throw new IllegalArgumentException("a BINARY column cannot be a partition column");
    }
    return value.asText();
  }

  /**
   * Prints a time as Paimon's cast to STRING does: as many digits of a fraction as the type has, or
   * as are needed.
   */
  private static String timestampText(LocalDateTime clock, int precision) {
    String fraction = String.format("%09d", clock.getNano());
    fraction =
        fraction.substring(0, precision) + fraction.substring(precision).replaceAll("0+$", "");
    return SECONDS.format(clock) + (fraction.isEmpty() ? "" : "." + fraction);
  }

  /**
   * Prints a number as Java 19 and newer do; older ones print more digits, and other folders would
   * come out of it.
   */
  private static String floatText(double number, int mostDigits, Predicate<BigDecimal> readsBack) {
    if (number == 0 || !Double.isFinite(number)) {
      return Double.toString(number);
    }
    BigDecimal exact = new BigDecimal(number);
    int count = 2;
    while (count < mostDigits
        && !readsBack.test(exact.round(new MathContext(count, RoundingMode.HALF_EVEN)))) {
      count++;
    }
    BigDecimal digits =
        exact.round(new MathContext(count, RoundingMode.HALF_EVEN)).stripTrailingZeros();
    int exponent = digits.precision() - digits.scale() - 1;
    if (exponent >= -3 && exponent < 7) {
      return digits.scale() <= 0 ? digits.setScale(1).toPlainString() : digits.toPlainString();
    }
    BigDecimal mantissa = digits.movePointLeft(exponent);
    return (mantissa.scale() <= 0 ? mantissa.setScale(1) : mantissa).toPlainString()
        + "E"
        + exponent;
  }

  private static String escape(String text) {
    StringBuilder escaped = new StringBuilder();
    for (char c : text.toCharArray()) {
      if (c < ' ' || ESCAPED.indexOf(c) >= 0) {
        escaped.append(String.format("%%%02X", (int) c));
      } else {
        escaped.append(c);
      }
    }
    return escaped.toString();
  }
}
