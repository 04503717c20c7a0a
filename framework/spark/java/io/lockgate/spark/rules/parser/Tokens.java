package io.lockgate.spark.rules.parser;

import java.util.List;
import org.antlr.v4.runtime.CharStreams;
import org.antlr.v4.runtime.CommonTokenStream;
import org.antlr.v4.runtime.Token;
import org.apache.spark.sql.catalyst.parser.SqlBaseLexer;
import org.apache.spark.sql.catalyst.parser.UpperCaseCharStream;

/** The tokens of a statement, as Spark's own lexer finds them, without comments and white space. */
final class Tokens {
  private final String sql;
  private final List<Token> tokens;

  /** The lexer counts characters, and a string of Java may hold some of them in two. */
  private final boolean isWide;

  Tokens(String sql) {
    this.sql = sql;
    this.isWide = sql.codePointCount(0, sql.length()) != sql.length();
    SqlBaseLexer lexer = new SqlBaseLexer(new UpperCaseCharStream(CharStreams.fromString(sql)));
    lexer.removeErrorListeners(); // what is wrong with the text, Spark's parser says
    CommonTokenStream stream = new CommonTokenStream(lexer);
    stream.fill();
    tokens =
        stream.getTokens().stream()
            .filter(token -> token.getChannel() == Token.DEFAULT_CHANNEL)
            .filter(token -> token.getType() != Token.EOF)
            .toList();
  }

  int count() {
    return tokens.size();
  }

  /**
   * The kind of a token by its name in Spark's grammar, as numbers differ between versions; of one
   * that is not there, an empty text.
   */
  String kind(int at) {
    String name = has(at) ? SqlBaseLexer.VOCABULARY.getSymbolicName(tokens.get(at).getType()) : "";
    return name == null ? "" : name;
  }

  boolean isKind(int at, String kind) {
    return kind(at).equals(kind);
  }

  private boolean has(int at) {
    return at >= 0 && at < tokens.size();
  }

  /** Tells whether a token is a word, in whatever case. */
  boolean is(int at, String word) {
    return has(at) && tokens.get(at).getText().equalsIgnoreCase(word);
  }

  /** Tells whether a token can be a part of a name. */
  boolean isName(int at) {
    if (!has(at)) {
      return false;
    }
    char first = tokens.get(at).getText().charAt(0);
    return first == '`' || Character.isJavaIdentifierStart(first);
  }

  /** The parenthesis that closes the one at a place, or -1. */
  int closing(int open) {
    int depth = 0;
    for (int at = open; at < tokens.size(); at++) {
      depth += isKind(at, "LEFT_PAREN") ? 1 : 0;
      depth -= isKind(at, "RIGHT_PAREN") ? 1 : 0;
      if (depth == 0) {
        return at;
      }
    }
    return -1;
  }

  String text(int first, int last) {
    return sql.substring(start(first), end(last));
  }

  int start(int at) {
    return position(tokens.get(at).getStartIndex());
  }

  int end(int at) {
    return position(tokens.get(at).getStopIndex() + 1);
  }

  private int position(int character) {
    return isWide ? sql.offsetByCodePoints(0, character) : character;
  }
}
