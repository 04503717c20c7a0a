package io.lockgate.spark.bridge;

import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Objects;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.filter.And;
import org.apache.spark.sql.connector.expressions.filter.Predicate;

/**
 * Lists of values that are only known at run time: very long ones are asked for by their bounds.
 */
public final class LongLists {
  private static final int LONGEST = 20_000;

  private LongLists() {}

  /** A predicate that skips no more than this one does, and costs little to send and to compare. */
  public static Predicate shortened(Predicate predicate) {
    Expression[] children = predicate.children();
    if (!predicate.name().equals("IN") || children.length <= LONGEST) {
      return predicate;
    }
    List<Literal<?>> values =
        Arrays.stream(children, 1, children.length)
            .filter(Literal.class::isInstance)
            .<Literal<?>>map(child -> (Literal<?>) child)
            .filter(literal -> Objects.nonNull(literal.value()))
            .toList();
    if (values.isEmpty() || !(values.get(0).value() instanceof Comparable)) {
      return predicate;
    }
    Comparator<Literal<?>> order = (left, right) -> compare(left.value(), right.value());
    Literal<?> least = values.stream().min(order).orElseThrow();
    Literal<?> greatest = values.stream().max(order).orElseThrow();
    return new And(
        new Predicate(">=", new Expression[] {children[0], least}),
        new Predicate("<=", new Expression[] {children[0], greatest}));
  }

  @SuppressWarnings("unchecked") // literals of one list are of one type
  private static int compare(Object left, Object right) {
    return ((Comparable<Object>) left).compareTo(right);
  }
}
