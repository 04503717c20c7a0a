package io.lockgate.spark.files;

import java.util.Arrays;

/**
 * Letters of scripts without blanks between words, such as Han, kana and Thai. The ranges stand
 * here, since versions of Java differ in the Unicode that they know; a twin of
 * pushdown/texts/unspaced.py.
 */
public final class UnspacedLetters {
  // First and last letter, and how many letters the longest indexed pieces have that begin with
  // one of them.
  private static final int[] RANGES = {
    0x0E00, 0x0E3E, 4, // Thai
    0x0E40, 0x0E4E, 4,
    0x0E50, 0x0E59, 4,
    0x0E5C, 0x0EFF, 4, // Lao
    0x1000, 0x1049, 4, // Myanmar
    0x1050, 0x109D, 4,
    0x1100, 0x11FF, 3, // Hangul jamo
    0x1780, 0x17D3, 4, // Khmer
    0x17D7, 0x17D7, 4,
    0x17DC, 0x17FF, 4,
    0x1950, 0x19DD, 4, // Tai Le, New Tai Lue
    0x1A20, 0x1A9F, 4, // Tai Tham
    0x1AA7, 0x1AA7, 4,
    0x1B00, 0x1B4D, 4, // Balinese
    0x1B50, 0x1B59, 4,
    0x2E80, 0x2FD5, 2, // radicals of Han
    0x3005, 0x3007, 2,
    0x3021, 0x3029, 2,
    0x3031, 0x3035, 2,
    0x3038, 0x303C, 2,
    0x3041, 0x309A, 3, // hiragana
    0x309D, 0x309F, 3,
    0x30A1, 0x30FA, 3, // katakana
    0x30FC, 0x30FF, 3,
    0x3105, 0x318F, 3, // bopomofo, and jamo for compatibility
    0x31A0, 0x31BF, 3,
    0x31F0, 0x31FF, 3,
    0x3400, 0x4DBF, 2, // Han
    0x4E00, 0x9FFF, 2,
    0xA000, 0xA48F, 2, // Yi
    0xA960, 0xA97F, 3, // more jamo
    0xA980, 0xA9C0, 4, // Javanese
    0xA9CF, 0xA9DD, 4,
    0xA9E0, 0xA9FF, 4, // more Myanmar
    0xAA60, 0xAA76, 4,
    0xAA7A, 0xAADD, 4, // and Tai Viet
    0xAC00, 0xD7A3, 2, // Hangul syllables
    0xD7B0, 0xD7FF, 3,
    0xF900, 0xFAFF, 2, // Han for compatibility
    0xFF66, 0xFFDC, 3, // kana and jamo of half width
    0x116D0, 0x116FF, 4,
    0x11700, 0x1173B, 4, // Ahom
    0x11740, 0x1174F, 4,
    0x16FE0, 0x16FE1, 2,
    0x16FE3, 0x18DFF, 2, // Tangut, Khitan
    0x1AFF0, 0x1B16F, 3, // older kana
    0x1B170, 0x1B2FF, 2, // Nushu
    0x20000, 0x2FFFD, 2, // extensions of Han
    0x30000, 0x3FFFD, 2,
  };
  private static final int FIELDS = 3;
  // First and last of other letters and signs of which all versions of Unicode say the same.
  private static final int[] AGREED_RANGES = {
    0x0000, 0x0377, 0x037A, 0x037F, 0x0384, 0x038A, 0x038C, 0x038C, 0x038E, 0x03A1, 0x03A3, 0x052F,
    0x2000, 0x2064, 0x2066, 0x206F, 0x3000, 0x303F, 0x309B, 0x309C, 0x30A0, 0x30A0, 0x30FB, 0x30FB,
    0xFE00, 0xFE0F, 0xFF01, 0xFF65, 0xE0100, 0xE01EF
  };
  private static final int FIRST = RANGES[0];
  // Marks of other blocks that follow a letter begin pieces like those of the largest scripts.
  private static final int OF_MARKS = 2;

  private UnspacedLetters() {}

  /** Tells whether a letter is one of them. */
  public static boolean has(int letter) {
    return rangeOf(letter) >= 0;
  }

  /** How many letters the longest piece has that begins with a letter of a run. */
  public static int longestPiece(int letter) {
    int range = rangeOf(letter);
    return range < 0 ? OF_MARKS : RANGES[range + 2];
  }

  /** Tells whether all versions of Unicode say the same of a letter or sign. */
  public static boolean isAgreedOn(int letter) {
    boolean agreed = has(letter);
    for (int i = 0; i < AGREED_RANGES.length && !agreed; i += 2) {
      agreed = letter >= AGREED_RANGES[i] && letter <= AGREED_RANGES[i + 1];
    }
    return agreed;
  }

  /** First and last letter of each range that all versions agree on. */
  public static int[] agreedRanges() {
    return Arrays.copyOf(AGREED_RANGES, AGREED_RANGES.length);
  }

  /** First letter, last letter and length of the longest piece of each range. */
  public static int[] ranges() {
    return Arrays.copyOf(RANGES, RANGES.length);
  }

  private static int rangeOf(int letter) {
    int low = 0;
    int high = letter < FIRST ? 0 : RANGES.length / FIELDS;
    while (low < high) {
      int middle = (low + high) >>> 1;
      if (letter > RANGES[middle * FIELDS + 1]) {
        low = middle + 1;
      } else if (letter < RANGES[middle * FIELDS]) {
        high = middle;
      } else {
        return middle * FIELDS;
      }
    }
    return -1;
  }
}
