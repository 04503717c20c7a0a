package io.lockgate.spark.index;

import io.lockgate.spark.files.WordMatch;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * The words of texts, but for numbers and hexadecimal ones of eight digits or more, as
 * framework/index/database/words.py makes them.
 */
final class TextWords implements ColumnKeys.Source {
  private static final int LEAST_HEXADECIMAL = 8;
  // Java 17 has Unicode 13. Python's version is the same or a later one, so that it may know
  // letters
  // that this one does not, but agrees about those that this one has.
  private static final boolean HAS_UNICODE_13 = Runtime.version().feature() == 17;
  // First and last letters that all versions know: Latin to Cyrillic, punctuation, kana, Chinese,
  // Korean, and full width.
  private static final int[] IN_ALL_VERSIONS = {
    0, 0x52F, 0x2000, 0x206F, 0x3000, 0x30FF, 0x4E00, 0x9FEF, 0xAC00, 0xD7A3, 0xFF00, 0xFFEF
  };

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
    for (String each : WordMatch.words(text)) {
      byte[] bytes = each.getBytes(StandardCharsets.UTF_8);
      add(bytes, bytes.length, keys);
    }
    return true;
  }

  /** Tells whether Python takes a letter for what this JVM does. */
  private static boolean isAgreedOn(int letter) {
    if (Character.getType(letter) == Character.UNASSIGNED) {
      return false;
    }
    boolean agreed = HAS_UNICODE_13 || !WordMatch.isOfWord(letter);
    for (int i = 0; i < IN_ALL_VERSIONS.length && !agreed; i += 2) {
      agreed = letter >= IN_ALL_VERSIONS[i] && letter <= IN_ALL_VERSIONS[i + 1];
    }
    return agreed;
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
