package io.lockgate.spark.lookup;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.Locale;

/**
 * The positions of the columns of a cached row: null words, then a word (or two) for each column of
 * fixed width, then the lengths of the others, four bytes each, then their bytes. {@code
 * lookup/codec/row_codec.py} has the format and its reasons.
 */
final class RowShape {
  /** Forms in which a column is kept; the names in lower case are those that Python gives. */
  enum Kind {
    BOOLEAN,
    INT8,
    INT16,
    INT32,
    INT64,
    FLOAT32,
    FLOAT64,
    MILLIS,
    DECIMAL,
    WIDE_DECIMAL,
    TEXT,
    BYTES;

    boolean isVariable() {
      return this == TEXT || this == BYTES;
    }

    private int words() {
      return this == WIDE_DECIMAL ? 2 : isVariable() ? 0 : 1;
    }
  }

  final Kind[] kinds;

  /** The word of a column of fixed width, the number among those of another width. */
  final int[] positions;

  final int nullWords;
  final int lengthsWord;

  /** Words before the bytes of the variable columns. */
  final int headWords;

  RowShape(JsonNode names) {
    kinds = new Kind[names.size()];
    positions = new int[kinds.length];
    nullWords = Math.max(1, (kinds.length + 63) / 64);
    int word = nullWords;
    int variable = 0;
    for (int i = 0; i < kinds.length; i++) {
      kinds[i] = Kind.valueOf(names.get(i).asText().toUpperCase(Locale.ROOT));
      positions[i] = kinds[i].isVariable() ? variable++ : word;
      word += kinds[i].words();
    }
    lengthsWord = word;
    headWords = word + (variable + 1) / 2;
  }
}
