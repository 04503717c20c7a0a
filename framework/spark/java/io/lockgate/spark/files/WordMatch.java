package io.lockgate.spark.files;

import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;
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
 * {@code match(text, terms)}: whether each word of the terms is a word of the text. Words consist
 * of letters, their marks and digits, and are compared in lower case, letter by letter. A twin of
 * pushdown/texts/patterns.py.
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
        + " and order";
  }

  @Override
  public String name() {
    return NAME;
  }

  /** The words of a text in lower case. */
  public static Set<String> words(String text) {
    Set<String> found = new HashSet<>();
    StringBuilder word = new StringBuilder();
    text.codePoints()
        .map(Character::toLowerCase)
        .forEach(
            each -> {
              if (isOfWord(each)) {
                word.appendCodePoint(each);
              } else if (!word.isEmpty()) {
                found.add(word.toString());
                word.setLength(0);
              }
            });
    if (!word.isEmpty()) {
      found.add(word.toString());
    }
    return found;
  }

  /** Tells whether a letter in lower case is one of words, as this JVM's Unicode has it. */
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
    private transient Set<String> wanted;

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
      UTF8String asked = input.getUTF8String(1);
      if (!asked.equals(terms)) {
        terms = asked.copy();
        wanted = words(asked.toString());
      }
      return words(input.getUTF8String(0).toString()).containsAll(wanted);
    }
  }
}
