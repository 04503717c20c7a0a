package io.lockgate.spark.rules.parser;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.Locale;
import java.util.Set;
import org.apache.spark.SparkThrowable;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.trees.CurrentOrigin$;
import scala.Option;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Map.Map2;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Spark's parser, or that of another extension, which reads lookup joins as Flink spells them.
 *
 * <p>A proxy, because the methods of parsers differ between versions of Spark. Text without a
 * lookup join goes on as it is.
 */
public final class LookupParser implements InvocationHandler {
  private static final String SYNTAX_ERROR = "PARSE_SYNTAX_ERROR";
  private static final Set<String> CLAUSE_STARTS = Set.of("'FOR'", "'SYSTEM_TIME'");
  private static final String NO_PLACE =
      ": a lookup stands behind JOIN, as in FROM orders AS o JOIN lake.db.dim FOR SYSTEM_TIME AS OF"
          + " o.proc_time AS d ON o.k = d.id; before MERGE, UPDATE or DELETE, write such rows into"
          + " a table";

  private final ParserInterface parser;

  private LookupParser(ParserInterface parser) {
    this.parser = parser;
  }

  /** The parser that hands on what it has rewritten to {@code parser}. */
  public static ParserInterface over(ParserInterface parser) {
    return (ParserInterface)
        Proxy.newProxyInstance(
            LookupParser.class.getClassLoader(),
            new Class<?>[] {ParserInterface.class},
            new LookupParser(parser));
  }

  @Override
  public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
    if (!isOfStatement(method.getName()) || !(arguments[0] instanceof String sql)) {
      return asked(method, arguments);
    }
    String rewritten = LookupText.rewritten(sql);
    if (rewritten.equals(sql)) {
      return read(method, arguments, null);
    }
    Object[] changed = arguments.clone();
    changed[0] = rewritten;
    try {
      return asked(method, changed);
    } catch (ParseException e) {
      // Its own text has the positions of the error, or no clause: `SELECT system_time AS of FROM
      // t`.
      return read(method, arguments, e);
    }
  }

  /**
   * Reads a text as it was written. An error at a clause of a lookup says where such clauses stand;
   * {@code refused} is the error of the rewritten text, or null.
   */
  private Object read(Method method, Object[] arguments, ParseException refused) throws Throwable {
    try {
      return asked(method, arguments);
    } catch (ParseException e) {
      String near = (refused == null ? e : refused).getMessageParameters().get("error");
      if (near != null
          && CLAUSE_STARTS.contains(near.toUpperCase(Locale.ROOT))
          && LookupText.hasClause((String) arguments[0])) {
        throw explained(e, near);
      }
      throw e;
    }
  }

  private static ParseException explained(ParseException error, String near) {
    return ParseErrors.of(
        error.command(),
        error.start(),
        SYNTAX_ERROR,
        new Map2<>("error", near, "hint", NO_PLACE),
        error.getQueryContext());
  }

  private Object asked(Method method, Object[] arguments) throws Throwable {
    try {
      return method.invoke(parser, arguments);
    } catch (InvocationTargetException e) {
      throw declared(e.getCause());
    }
  }

  /**
   * An error that methods of a parser declare, for one of a script, which they do not: a proxy
   * would hide its words.
   */
  private static Throwable declared(Throwable error) {
    boolean isHidden = !(error instanceof RuntimeException || error instanceof ParseException);
    return isHidden
            && error instanceof SparkThrowable thrown
            && error instanceof Exception
            && thrown.getCondition() != null
        ? ParseErrors.of(
            Option.empty(),
            CurrentOrigin$.MODULE$.get(),
            thrown.getCondition(),
            Map$.MODULE$.from(CollectionConverters.asScala(thrown.getMessageParameters())),
            thrown.getQueryContext())
        : error;
  }

  private static boolean isOfStatement(String method) {
    return method.startsWith("parsePlan") || method.equals("parseQuery");
  }
}
