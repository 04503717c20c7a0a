import java.util.Arrays;
import java.util.List;
import java.util.function.Function;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;

/**
 * Nanoseconds that parsers take for all of some texts, each text's median summed up.
 *
 * <p>It runs inside the JVM: a call from Python costs a tenth of a text, and differs from parser to
 * parser. The parsers take turns text by text, in another order each round.
 */
public final class ParseTimes implements Function<List<Object>, List<Long>> {
  /** Takes the parsers, the texts, the rounds that are measured and those before. */
  @Override
  @SuppressWarnings("unchecked") // one caller, which is Python
  public List<Long> apply(List<Object> arguments) {
    List<ParserInterface> parsers = (List<ParserInterface>) arguments.get(0);
    List<String> texts = (List<String>) arguments.get(1);
    int rounds = (Integer) arguments.get(2);
    int before = (Integer) arguments.get(3);
    long[][][] taken = new long[parsers.size()][texts.size()][rounds];
    for (int round = -before; round < rounds; round++) {
      for (int text = 0; text < texts.size(); text++) {
        for (int turn = 0; turn < parsers.size(); turn++) {
          int parser = Math.floorMod(turn + round + text, parsers.size());
          long started = System.nanoTime();
          read(parsers.get(parser), texts.get(text));
          long nanos = System.nanoTime() - started;
          if (round >= 0) {
            taken[parser][text][round] = nanos;
          }
        }
      }
    }
    return Arrays.stream(taken).map(ParseTimes::sum).toList();
  }

  private static void read(ParserInterface parser, String text) {
    try {
      parser.parsePlan(text);
    } catch (ParseException e) {
      throw new IllegalArgumentException(text, e);
    }
  }

  private static long sum(long[][] texts) {
    long sum = 0;
    for (long[] rounds : texts) {
      Arrays.sort(rounds);
      sum += rounds[rounds.length / 2];
    }
    return sum;
  }
}
