package io.lockgate.spark.index;

import io.lockgate.spark.files.UnspacedLetters;
import io.lockgate.spark.files.WordMatch;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * The words of texts, but for numbers and hexadecimal ones of eight digits or more, and the pieces
 * of unspaced runs, as framework/index/database/words.py makes them.
 */
final class TextWords implements ColumnKeys.Source {
  private static final int LEAST_HEXADECIMAL = 8;
  // Java 17 has Unicode 13. Python's version is the same or a later one, so that it may know
  // letters that this one does not, but agrees about those that this one has.
  private static final boolean HAS_UNICODE_13 = Runtime.version().feature() == 17;
  private byte[] word = new byte[64];
  private int length;

  @Override
  public boolean put(SpecializedGetters row, int ordinal, KeySet keys) {
    UTF8String text = row.getUTF8String(ordinal);
    Object base = text.getBaseObject();
    long offset = text.getBaseOffset();
    int end = text.numBytes();
    length = 0;
    for (int i = 0; i < end; i++) {
      int letter = Platform.getByte(base, offset + i);
      if (letter < 0) {
        return putAny(text.toString(), keys);
      }
      if (letter >= 'A' && letter <= 'Z') {
        append(letter + ('a' - 'A'));
      } else if (letter >= 'a' && letter <= 'z' || letter >= '0' && letter <= '9') {
        append(letter);
      } else {
        add(word, length, keys);
        length = 0;
      }
    }
    add(word, length, keys);
    return true;
  }

  private void append(int letter) {
    if (length == word.length) {
      word = Arrays.copyOf(word, 2 * length);
    }
    word[length++] = (byte) letter;
  }

  /** Adds the words of a text with letters beyond ASCII. */
  private static boolean putAny(String text, KeySet keys) {
    if (!text.codePoints().allMatch(TextWords::isAgreedOn)) {
      return false;
    }
    for (String each : WordMatch.wordsOfAnyEngine(text)) {
      if (WordMatch.isRun(each)) {
        addPieces(each, keys);
      } else {
        byte[] bytes = each.getBytes(StandardCharsets.UTF_8);
        add(bytes, bytes.length, keys);
      }
    }
    return true;
  }

  /** Adds the longest piece at each letter of a run, and the one that is a letter shorter. */
  private static void addPieces(String run, KeySet keys) {
    int[] letters = run.codePoints().toArray();
    byte[] bytes = run.getBytes(StandardCharsets.UTF_8);
    byte[] piece = new byte[bytes.length];
    int[] starts = new int[letters.length + 1]; // of each letter in the bytes
    for (int i = 0; i < letters.length; i++) {
      starts[i + 1] = starts[i] + (letters[i] < 0x800 ? 2 : letters[i] < 0x10000 ? 3 : 4);
    }
    for (int start = 0; start < letters.length; start++) {
      int longest = UnspacedLetters.longestPiece(letters[start]);
      for (int end = start + longest - 1; end <= start + longest && end <= letters.length; end++) {
        int length = starts[end] - starts[start];
        System.arraycopy(bytes, starts[start], piece, 0, length);
        keys.add(ValueKeys.key(piece, length));
      }
    }
  }

  /** Tells whether Python takes a letter for what this JVM does. */
  private static boolean isAgreedOn(int letter) {
    if (UnspacedLetters.isAgreedOn(letter)) {
      return true;
    }
    return Character.getType(letter) != Character.UNASSIGNED
        && (HAS_UNICODE_13 || !WordMatch.isOfWord(letter));
  }

  private static void add(byte[] word, int length, KeySet keys) {
    if (length > 0 && isIndexed(word, length)) {
      keys.add(ValueKeys.key(word, length));
    }
  }

  private static boolean isIndexed(byte[] word, int length) {
    boolean number = true;
    for (int i = 0; i < length; i++) {
      boolean digit = word[i] >= '0' && word[i] <= '9';
      number &= digit;
      if (!digit && (word[i] < 'a' || word[i] > 'f')) {
        return true;
      }
    }
    return !number && length < LEAST_HEXADECIMAL;
  }
}
