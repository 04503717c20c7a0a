package io.lockgate.spark.lookup;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;

/**
 * Answers {@code mark<TAB>fingerprint} with the mark, and {@code
 * open<TAB>cache<TAB>snapshot<TAB>mark} with how opening goes.
 */
public final class StatesCases {
  public static void main(String[] arguments) throws IOException {
    PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    BufferedReader lines =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      String[] parts = line.split("\t", -1);
      out.println(parts[0].equals("mark") ? Long.toString(States.markOf(parts[1])) : opened(parts));
    }
  }

  private static String opened(String[] parts) {
    try {
      States.release(
          States.acquire(
              Path.of(parts[1]), Long.parseLong(parts[2]), Long.parseLong(parts[3]), 0.2));
      return "opened";
    } catch (RuntimeException e) {
      return String.valueOf(e.getMessage())
          .lines()
          .findFirst()
          .orElse("")
          .replaceAll("^\\[USER_RAISED_EXCEPTION\\] | SQLSTATE: P0001$", "");
    }
  }
}
