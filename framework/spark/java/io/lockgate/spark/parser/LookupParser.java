package io.lockgate.spark.parser;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;

/**
 * Spark's parser, or that of another extension, which reads lookup joins as Flink spells them.
 *
 * <p>A proxy, because the methods of parsers differ between versions of Spark. Text without a
 * lookup join goes on as it is.
 */
public final class LookupParser implements InvocationHandler {
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
    if (isOfStatement(method.getName()) && arguments[0] instanceof String sql) {
      String rewritten = LookupText.rewritten(sql);
      if (!rewritten.equals(sql)) {
        Object[] changed = arguments.clone();
        changed[0] = rewritten;
        try {
          return asked(method, changed);
        } catch (ParseException e) {
          // Its own text has the positions of the error, or no clause: `SELECT system_time AS of
          // FROM t`.
          return asked(method, arguments);
        }
      }
    }
    return asked(method, arguments);
  }

  private Object asked(Method method, Object[] arguments) throws Throwable {
    try {
      return method.invoke(parser, arguments);
    } catch (InvocationTargetException e) {
      throw e.getCause();
    }
  }

  private static boolean isOfStatement(String method) {
    return method.startsWith("parsePlan") || method.equals("parseQuery");
  }
}
