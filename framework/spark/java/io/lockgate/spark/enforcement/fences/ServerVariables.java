package io.lockgate.spark.enforcement.fences;

import io.lockgate.spark.enforcement.Govern;
import io.lockgate.spark.enforcement.parts.ServerReferences;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.internal.SQLConf;

/**
 * Refuses texts of governed sessions that name variables of the server: Spark would put their
 * values, passwords among them, in the place of {@code ${env:NAME}} and {@code ${system:NAME}}.
 *
 * <p>Spark does so in the values of settings too, which a client sets without a statement: see
 * {@link ServerValues}.
 */
public final class ServerVariables implements InvocationHandler {
  private final SparkSession session;
  private final ParserInterface parser;

  private ServerVariables(SparkSession session, ParserInterface parser) {
    this.session = session;
    this.parser = parser;
  }

  /** The parser that hands on all other texts to {@code parser}. */
  public static ParserInterface over(SparkSession session, ParserInterface parser) {
    ServerBindings.hideSoon(session);
    return (ParserInterface)
        Proxy.newProxyInstance(
            ServerVariables.class.getClassLoader(),
            new Class<?>[] {ParserInterface.class},
            new ServerVariables(session, parser));
  }

  @Override
  public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
    if (arguments != null && arguments[0] instanceof String text && text.contains("${")) {
      check(text);
    }
    try {
      return method.invoke(parser, arguments);
    } catch (InvocationTargetException e) {
      throw e.getCause();
    }
  }

  private void check(String text) {
    // Also where Spark does not replace them in texts: SET brings a text into a setting.
    if (ServerReferences.in(text, SQLConf.get()) && Govern.decides(session)) {
      // A parser declares no other failure of Spark's than errors of syntax.
      throw new IllegalArgumentException(
          "A statement may not take variables of the server, as ${env:NAME} and ${system:NAME} are:"
              + " write the value itself");
    }
  }
}
