package io.lockgate.spark.files;

import java.util.Arrays;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.functions.BoundFunction;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * {@code match(text, terms)}: whether each word of the terms is a word of the text, and each
 * unspaced run of the terms is anywhere in it. Words consist of letters, their marks and digits,
 * runs of {@link UnspacedLetters} and their marks. All are compared in lower case, letter by
 * letter. A twin of pushdown/texts/patterns.py.
 */
public final class WordMatch implements UnboundFunction {
  public static final String NAME = "match";

  @Override
  public BoundFunction bind(StructType input) {
    StructField[] fields = input.fields();
    if (fields.length != 2 || !isText(fields[0].dataType()) || !isText(fields[1].dataType())) {
      throw new UnsupportedOperationException("match takes a text and the words to find in it");
    }
    return new Bound(input);
  }

  private static boolean isText(DataType type) {
    return type instanceof StringType || type.equals(DataTypes.NullType);
  }

  @Override
  public String description() {
    return "match(text, terms): whether each word of the terms is a word of the text, in any case"
        + " and order; of scripts without blanks between words, whether it is anywhere in the text";
  }

  @Override
  public String name() {
    return NAME;
  }

  /** The words and unspaced runs of a text in lower case. */
  public static Set<String> words(String text) {
    return wordsOfLowerCase(lower(text));
  }

  /** The words also of an engine that takes letters that it does not know for blanks. */
  public static Set<String> wordsOfAnyEngine(String text) {
    String lower = lower(text);
    Set<String> found = wordsOfLowerCase(lower);
    if (!lower.codePoints().allMatch(UnspacedLetters::isAgreedOn)) {
      StringBuilder agreed = new StringBuilder(lower.length());
      lower
          .codePoints()
          .map(each -> UnspacedLetters.isAgreedOn(each) ? each : ' ')
          .forEach(agreed::appendCodePoint);
      found.addAll(wordsOfLowerCase(agreed.toString()));
    }
    return found;
  }

  private static String lower(String text) {
    StringBuilder lower = new StringBuilder(text.length());
    text.codePoints().map(Character::toLowerCase).forEach(lower::appendCodePoint);
    return lower.toString();
  }

  private static Set<String> wordsOfLowerCase(String text) {
    Set<String> found = new HashSet<>();
    int start = 0; // of the open word or run
    boolean inRun = false;
    int length = text.length();
    for (int at = 0; at < length; ) {
      int letter = text.codePointAt(at);
      boolean unspaced = UnspacedLetters.has(letter);
      boolean goesOn =
          inRun ? unspaced || isMark(letter) : !unspaced && isOfWord(letter); // or begins a word
      if (!goesOn) {
        add(text, start, at, found);
        inRun = unspaced;
        start = unspaced || isOfWord(letter) ? at : at + Character.charCount(letter);
      }
      at += Character.charCount(letter);
    }
    add(text, start, length, found);
    return found;
  }

  private static void add(String text, int start, int end, Set<String> found) {
    if (start < end) {
      found.add(text.substring(start, end));
    }
  }

  /** Tells whether what {@link #words} found is an unspaced run. */
  public static boolean isRun(String word) {
    return UnspacedLetters.has(word.codePointAt(0));
  }

  private static boolean isMark(int letter) {
    int type = Character.getType(letter);
    return type == Character.NON_SPACING_MARK
        || type == Character.ENCLOSING_MARK
        || type == Character.COMBINING_SPACING_MARK;
  }

  /**
   * Tells whether a letter in lower case is one of words or marks, as this JVM's Unicode has it.
   */
  public static boolean isOfWord(int letter) {
    return switch (Character.getType(letter)) {
      case Character.UPPERCASE_LETTER,
          Character.LOWERCASE_LETTER,
          Character.TITLECASE_LETTER,
          Character.MODIFIER_LETTER,
          Character.OTHER_LETTER,
          Character.NON_SPACING_MARK,
          Character.ENCLOSING_MARK,
          Character.COMBINING_SPACING_MARK,
          Character.DECIMAL_DIGIT_NUMBER,
          Character.LETTER_NUMBER,
          Character.OTHER_NUMBER ->
          true;
      default -> false;
    };
  }

  /** The function with its arguments. */
  public static final class Bound extends BoundScalar<Boolean> {
    private transient UTF8String terms;
    private transient Set<String> words;
    private transient Set<String> runs;

    Bound(StructType input) {
      super(NAME, input);
    }

    /** Equal queries call equal functions. */
    @Override
    public boolean equals(Object other) {
      return other instanceof Bound bound && Arrays.equals(bound.types, types);
    }

    @Override
    public int hashCode() {
      return Arrays.hashCode(types);
    }

    @Override
    public DataType resultType() {
      return DataTypes.BooleanType;
    }

    @Override
    public Boolean produceResult(InternalRow input) {
      if (input.isNullAt(0) || input.isNullAt(1)) {
        return null;
      }
      UTF8String given = input.getUTF8String(1);
      if (!given.equals(terms)) {
        terms = given.copy();
        Map<Boolean, Set<String>> found =
            WordMatch.words(given.toString()).stream()
                .collect(Collectors.partitioningBy(WordMatch::isRun, Collectors.toSet()));
        words = found.get(false);
        runs = found.get(true);
      }
      String text = lower(input.getUTF8String(0).toString());
      return runs.stream().allMatch(text::contains)
          && (words.isEmpty() || wordsOfLowerCase(text).containsAll(words));
    }
  }
}
