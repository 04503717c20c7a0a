package io.lockgate.spark.rules.parser;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HexFormat;
import java.util.List;
import java.util.Set;

/**
 * The text of a statement with lookup joins, in words that Spark's own parser reads.
 *
 * <p>Only tokens of Spark's lexer are looked at, so strings and comments stay as they are:
 *
 * <ul>
 *   <li>{@code FOR SYSTEM_TIME AS OF o.proc_time} becomes {@code ... AS OF
 *       PROCTIME('o.proc_time')};
 *   <li>{@code t /*+ OPTIONS('k'='v') *}{@code / FOR SYSTEM_TIME AS OF x} becomes {@code t FOR
 *       SYSTEM_TIME AS OF x WITH ('k'='v')};
 *   <li>{@code LOOKUP('k'='v')} in a hint becomes {@code LOOKUP(('k'='v'))}.
 * </ul>
 *
 * <p>A view stores the text that this makes, which it leaves as it is when the view is read.
 */
public final class LookupText {
  /** The function that stands for the time at which a row is processed. */
  public static final String PROCTIME = "PROCTIME";

  private static final String CLAUSE = "SYSTEM_TIME";
  private static final String CLAUSE_START = "SYSTEM";
  private static final String HINT = "LOOKUP";
  private static final String OPTIONS = "OPTIONS";

  /** Unquoted words that are literals (TRUE, NULL, CURRENT_DATE), not column names. */
  private static final Set<String> VALUES =
      Set.of(
          "CURRENT_DATE",
          "CURRENT_TIMESTAMP",
          "CURRENT_TIME",
          "CURRENT_USER",
          "NULL",
          "TRUE",
          "FALSE",
          "CASE",
          "INTERVAL");

  /** Tokens that make an expression of a name before them. */
  private static final Set<String> OPERATORS =
      Set.of(
          "LEFT_PAREN",
          "LEFT_BRACKET",
          "STRING_LITERAL",
          "DOUBLEQUOTED_STRING",
          "PLUS",
          "MINUS",
          "ASTERISK",
          "SLASH",
          "PERCENT",
          "CONCAT_PIPE",
          "COLON");

  private final String sql;
  private final Tokens tokens;
  private final List<Edit> edits = new ArrayList<>();

  private LookupText(String sql) {
    this.sql = sql;
    this.tokens = new Tokens(sql);
  }

  /** A text in place of what stands between two positions. */
  private record Edit(int start, int end, String text) {}

  /** The text for Spark's parser; the same object where there is nothing to change. */
  static String rewritten(String sql) {
    return mentionsTime(sql) ? new LookupText(sql).edited() : sql;
  }

  /** Tells whether a text has the clause of a lookup join anywhere. */
  static boolean hasClause(String sql) {
    if (!mentionsTime(sql)) {
      return false;
    }
    LookupText text = new LookupText(sql);
    for (int at = 0; at < text.tokens.count(); at++) {
      if (text.isClause(at) && text.clause(at)) {
        return true;
      }
    }
    return false;
  }

  /** Almost every statement ends here. */
  private static boolean mentionsTime(String sql) {
    for (int at = sql.indexOf('_'); at >= 0; at = sql.indexOf('_', at + 1)) {
      if (sql.regionMatches(true, at - CLAUSE_START.length(), CLAUSE, 0, CLAUSE.length())) {
        return true;
      }
    }
    return false;
  }

  private String edited() {
    boolean found = false;
    for (int at = 0; at < tokens.count(); at++) {
      found |= isClause(at) && clause(at);
    }
    if (found) {
      hints();
    }
    return applied();
  }

  private boolean isClause(int at) {
    return tokens.isKind(at, "SYSTEM_TIME")
        && tokens.isKind(at + 1, "AS")
        && tokens.isKind(at + 2, "OF");
  }

  /** Rewrites the clause if it is one of a lookup join; tells whether it is. */
  private boolean clause(int at) {
    int first = at + 3;
    int last = isProcessingTime(first) ? tokens.closing(first + 1) : column(first);
    if (last < 0) {
      return false;
    }
    if (!isProcessingTime(first)) {
      replace(first, last, PROCTIME + "(" + literal(tokens.text(first, last)) + ")");
    }
    boolean hasFor = at > 0 && tokens.isKind(at - 1, "FOR");
    options(hasFor ? at - 2 : at - 1, last);
    return true;
  }

  private boolean isProcessingTime(int at) {
    return tokens.is(at, PROCTIME) && tokens.isKind(at + 1, "LEFT_PAREN");
  }

  /** The last token of the name of a column that begins here, or -1. */
  private int column(int first) {
    if (!tokens.isName(first) || VALUES.contains(tokens.kind(first))) {
      return -1;
    }
    int last = first;
    while (tokens.isKind(last + 1, "DOT") && tokens.isName(last + 2)) {
      last += 2;
    }
    return OPERATORS.contains(tokens.kind(last + 1)) ? -1 : last;
  }

  /** A name as a literal that reads the same whether or not backslashes escape. */
  private static String literal(String name) {
    if (name.indexOf('\'') < 0 && name.indexOf('\\') < 0) {
      return "'" + name + "'";
    }
    byte[] bytes = name.getBytes(StandardCharsets.UTF_8);
    return "X'" + HexFormat.of().formatHex(bytes) + "'";
  }

  /** Moves the hint with options that ends here behind the clause. */
  private void options(int end, int last) {
    if (!tokens.isKind(end, "HENT_END") || !tokens.isKind(end - 1, "RIGHT_PAREN")) {
      return;
    }
    int start = end;
    while (start >= 0 && !tokens.isKind(start, "HENT_START")) {
      start--;
    }
    if (tokens.is(start + 1, OPTIONS) && tokens.isKind(start + 2, "LEFT_PAREN")) {
      replace(start, end, "");
      insertAfter(last, " WITH " + tokens.text(start + 2, end - 1));
    }
  }

  /** Puts the pairs of LOOKUP hints into parentheses. */
  private void hints() {
    boolean inHint = false;
    for (int at = 0; at < tokens.count(); at++) {
      String kind = tokens.kind(at);
      inHint = kind.equals("HENT_START") || inHint && !kind.equals("HENT_END");
      if (inHint && tokens.is(at, HINT) && tokens.isKind(at + 1, "LEFT_PAREN")) {
        pairs(at + 2, tokens.closing(at + 1));
      }
    }
  }

  private void pairs(int first, int end) {
    int start = first;
    boolean isPair = false;
    for (int at = first; at <= end; at++) {
      String kind = tokens.kind(at);
      if (kind.equals("LEFT_PAREN")) {
        at = Math.max(at, tokens.closing(at));
      } else if (kind.equals("COMMA") || at == end) {
        if (isPair) {
          replace(start, at - 1, "(" + tokens.text(start, at - 1) + ")");
        }
        start = at + 1;
        isPair = false;
      }
      isPair |= kind.equals("EQ");
    }
  }

  private void replace(int first, int last, String text) {
    edits.add(new Edit(tokens.start(first), tokens.end(last), text));
  }

  private void insertAfter(int token, String text) {
    edits.add(new Edit(tokens.end(token), tokens.end(token), text));
  }

  private String applied() {
    // Stable: what is inserted at a place comes after what ends there.
    edits.sort(Comparator.comparingInt(Edit::start).thenComparingInt(Edit::end));
    StringBuilder out = new StringBuilder();
    int copied = 0;
    for (Edit edit : edits) {
      out.append(sql, copied, edit.start).append(edit.text);
      copied = edit.end;
    }
    return edits.isEmpty() ? sql : out.append(sql, copied, sql.length()).toString();
  }
}
