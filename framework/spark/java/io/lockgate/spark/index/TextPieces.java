package io.lockgate.spark.index;

import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * The pieces of texts, three bytes long, with A to Z as a to z; and those of texts with letters
 * that fold to ASCII's as if they were, as framework/index/database/segment_kinds.py makes them.
 */
final class TextPieces implements ColumnKeys.Source {
  private static final int PIECE_BITS = 0xFFFFFF;
  // The first bytes of the letters that fold.
  private static final int OF_I = 0xC4;
  private static final int OF_S = 0xC5;
  private static final int OF_KELVIN = 0xE2;

  @Override
  public boolean put(SpecializedGetters row, int ordinal, KeySet keys) {
    UTF8String text = row.getUTF8String(ordinal);
    if (put(text.getBaseObject(), text.getBaseOffset(), text.numBytes(), keys)) {
      byte[] bytes = text.getBytes();
      byte[] folded = new byte[bytes.length];
      int length = fold(bytes, folded);
      if (length < bytes.length) {
        put(folded, Platform.BYTE_ARRAY_OFFSET, length, keys);
      }
    }
    return true;
  }

  /** Adds all pieces; tells whether the text may have letters that fold. */
  private static boolean put(Object base, long offset, int length, KeySet keys) {
    int piece = 0;
    boolean folds = false;
    for (int i = 0; i < length; i++) {
      int letter = Platform.getByte(base, offset + i) & 0xFF;
      if (letter >= 'A' && letter <= 'Z') {
        letter += 'a' - 'A';
      } else {
        folds |= letter == OF_I || letter == OF_S || letter == OF_KELVIN;
      }
      piece = (piece << 8 | letter) & PIECE_BITS;
      if (i >= 2) {
        keys.add(piece);
      }
    }
    return folds;
  }

  /** Copies a text with plain letters for those that fold, which are longer; returns its length. */
  private static int fold(byte[] bytes, byte[] folded) {
    int length = 0;
    for (int i = 0; i < bytes.length; i++) {
      int second = i + 1 < bytes.length ? bytes[i + 1] & 0xFF : 0;
      int third = i + 2 < bytes.length ? bytes[i + 2] & 0xFF : 0;
      byte letter = bytes[i];
      switch (letter & 0xFF) {
        case OF_I -> { // a capital I with a dot, and a small one without
          if (second == 0xB0 || second == 0xB1) {
            letter = 'i';
            i++;
          }
        }
        case OF_S -> { // a long s
          if (second == 0xBF) {
            letter = 's';
            i++;
          }
        }
        case OF_KELVIN -> {
          if (second == 0x84 && third == 0xAA) {
            letter = 'k';
            i += 2;
          }
        }
        default -> {}
      }
      folded[length++] = letter;
    }
    return length;
  }
}
