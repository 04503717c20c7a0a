package io.lockgate.spark.rules.parser;

import org.apache.spark.QueryContext;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.trees.Origin;
import scala.Option;
import scala.collection.immutable.Map;

/** Errors of the parser, which have no end since 4.1. */
final class ParseErrors {
  private ParseErrors() {}

  static ParseException of(
      Option<String> command,
      Origin start,
      String condition,
      Map<String, String> parameters,
      QueryContext[] context) {
    return new ParseException(command, start, condition, parameters, context);
  }
}
