package io.lockgate.types;

import java.time.DateTimeException;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.format.DateTimeFormatter;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Random;
import java.util.Set;

/**
 * Prints the vectors of date patterns (tests/fixtures/date_patterns.json), as {@code
 * java.time.format} answers: run it by {@code java DatePatternVectors.java}.
 */
public final class DatePatternVectors {
  private static final List<String> PATTERNS =
      List.of(
          "yyyyMMdd",
          "yyMMdd",
          "uuuuMMdd",
          "yyyyMMddHH",
          "yyyyMMddHHmm",
          "yyyyMMddHHmmss",
          "yyyyMMddHHmmssSSS",
          "yyyyMMdd HH",
          "yyyy-MM-dd",
          "uuuu-MM-dd",
          "yyy-MM-dd",
          "y-M-d",
          "u-M-d",
          "yyyyyMMdd",
          "yyyyMd",
          "yMMdd",
          "yyyy-LL-dd",
          "yyyy-M-d H:m:s",
          "yyyy-MM-dd HH",
          "yyyy-MM-dd HH:mm",
          "yyyy-MM-dd HH:mm:ss",
          "yyyy-MM-dd HH:mm:ss.SSS",
          "yyyy-MM-dd HH:mm:ss.SSSSSSSSS",
          "yyyy-MM-dd'T'HH:mm:ss",
          "yyyy-MM-dd[ HH:mm[:ss]]",
          "yyyyMMdd[HH]",
          "[yyyy-MM-dd][yyyyMMdd]",
          "yyyy/MM/dd HH:mm",
          "yyyy-MM-dd HH:ss",
          "yyyy-MM-dd mm",
          "yyyyDDD",
          "yyyy-D",
          "yyyy-DD",
          "yyyy-MM-dd D",
          "yyyy-MM-D",
          "yyyy yyyy-MM-dd",
          "uuuu yyyy-MM-dd",
          "'day='yyyyMMdd",
          "yyyy''MM''dd",
          "ddMMyyyy",
          "dd.MM.yy",
          "H yyyy-MM-dd",
          "yyyy-MM-dd%");
  private static final List<String> TEXTS =
      List.of(
          "",
          "202611",
          "2026111",
          "20261101",
          "202601011",
          "2026-1-1",
          "2026-01-01 ",
          " 2026-01-01",
          "2026-02-29",
          "2026-02-31",
          "2026-04-31",
          "2026-04-32",
          "20260231",
          "2024366",
          "2026366",
          "2026-366",
          "2026-13-01",
          "2026-00-10",
          "0000-01-01",
          "-2026-01-01",
          "+2026-01-01",
          "+12026-01-01",
          "+02026-01-01",
          "12026-01-01",
          "020260101",
          "+20260101",
          "2026-01-01 24",
          "2026-01-01 24:00",
          "2026-01-01 24:00:00",
          "2026-01-01 24:01",
          "2026-01-01 25",
          "2026-01-01 23:60",
          "2026-01-01 00:00:60",
          "2026-1-5 7:8:9",
          "2026-1-5 -7:8:9",
          "2026-W01",
          "2026-01-01T00:00:00",
          "2026-01-01 10:00:00.1",
          "2026-01-01 10:00:00.1234567",
          "２０２６0101",
          "٢٠٢٦-٠١-٠١",
          "2026-01-01\u0000",
          "__DEFAULT_PARTITION__",
          "2026 2026-01-01",
          "2026 2025-01-01",
          "2026-01-31 31",
          "2026-01-31 32",
          "2026-01-0",
          "2026-01--0",
          "99999999999999999999-01-01");
  private static final List<String> REFUSED =
      List.of(
          "yyyy-MM-dd]",
          "yyyy-MM-dd{",
          "yyyy-MM-dd#",
          "yyyy-MM-dd'T",
          "yyyy-MM-ddd",
          "yyyy-MM-dd HHH",
          "yyyy-DDDD",
          "yyyy-MM-dd SSSSSSSSSS",
          "yyyy-MM-dd b",
          "yyyy-MMMMMM-dd");

  private DatePatternVectors() {}

  /** Prints the vectors. */
  public static void main(String[] arguments) {
    Random random = new Random(35);
    List<String> parsed = new ArrayList<>();
    List<String> formatted = new ArrayList<>();
    for (String pattern : PATTERNS) {
      DateTimeFormatter formatter = DateTimeFormatter.ofPattern(pattern, Locale.ROOT);
      Set<String> texts = new LinkedHashSet<>(TEXTS);
      for (int number = 0; number < 12; number++) {
        LocalDateTime time = someTime(random);
        String text = formatter.format(time);
        if (number < 4) {
          formatted.add(line("pattern", pattern, "time", time.toString(), "text", text));
        }
        texts.add(text);
        texts.add(changed(text, random));
      }
      for (String text : texts) {
        parsed.add(line("pattern", pattern, "text", text, "time", parse(formatter, text)));
      }
    }
    List<String> refused = new ArrayList<>();
    for (String pattern : REFUSED) {
      refused.add("  " + quoted(refusedByJava(pattern)));
    }
    System.out.print(
        "{\n\"parsed\": [\n"
            + String.join(",\n", parsed)
            + "\n],\n\"formatted\": [\n"
            + String.join(",\n", formatted)
            + "\n],\n\"refused\": [\n"
            + String.join(",\n", refused)
            + "\n]\n}\n");
  }

  /**
   * The time that a text writes, a date's midnight; null for none, or for a year beyond 1 to 9999.
   */
  private static String parse(DateTimeFormatter formatter, String text) {
    LocalDateTime time;
    try {
      time = LocalDateTime.parse(text, formatter);
    } catch (DateTimeException noTime) {
      try {
        time = LocalDate.parse(text, formatter).atStartOfDay();
      } catch (DateTimeException noDate) {
        return null;
      }
    }
    boolean inRange = time.getYear() >= 1 && time.getYear() <= 9999;
    return inRange ? time.truncatedTo(ChronoUnit.MICROS).toString() : null;
  }

  private static String refusedByJava(String pattern) {
    try {
      DateTimeFormatter.ofPattern(pattern, Locale.ROOT);
    } catch (IllegalArgumentException refusal) {
      return pattern;
    }
    throw new IllegalStateException(pattern + " is a pattern of Java's");
  }

  private static LocalDateTime someTime(Random random) {
    long micros = (long) (random.nextDouble() * 86_400_000_000L);
    int year = random.nextInt(4) == 0 ? 1 + random.nextInt(9999) : 2000 + random.nextInt(100);
    return LocalDate.ofYearDay(year, 1 + random.nextInt(365))
        .atStartOfDay()
        .plus(micros, ChronoUnit.MICROS);
  }

  /** A text with one character more, less or another. */
  private static String changed(String text, Random random) {
    int place = random.nextInt(text.length());
    char other = "0123456789-+ ".charAt(random.nextInt(13));
    return switch (random.nextInt(3)) {
      case 0 -> text.substring(0, place) + text.substring(place + 1);
      case 1 -> text.substring(0, place) + other + text.substring(place);
      default -> text.substring(0, place) + other + text.substring(place + 1);
    };
  }

  private static String line(String... pairs) {
    List<String> members = new ArrayList<>();
    for (int at = 0; at < pairs.length; at += 2) {
      members.add(quoted(pairs[at]) + ": " + quoted(pairs[at + 1]));
    }
    return "  {" + String.join(", ", members) + "}";
  }

  private static String quoted(String text) {
    if (text == null) {
      return "null";
    }
    StringBuilder out = new StringBuilder("\"");
    for (char each : text.toCharArray()) {
      if (each < ' ' || each > '~' || each == '"' || each == '\\') {
        out.append(String.format(Locale.ROOT, "\\u%04x", (int) each));
      } else {
        out.append(each);
      }
    }
    return out.append('"').toString();
  }
}
