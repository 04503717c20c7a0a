import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.File;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.PrivilegedExceptionAction;
import java.util.Base64;
import java.util.HashMap;
import java.util.Map;
import javax.security.auth.Subject;
import javax.security.auth.login.AppConfigurationEntry;
import javax.security.auth.login.Configuration;
import javax.security.auth.login.LoginContext;
import org.apache.kerby.kerberos.kerb.server.SimpleKdcServer;
import org.ietf.jgss.GSSContext;
import org.ietf.jgss.GSSCredential;
import org.ietf.jgss.GSSManager;
import org.ietf.jgss.Oid;

/**
 * A key distribution centre, and a service behind Negotiate whose answer is the file `answer.json`.
 *
 * <p>Writes `krb5.conf` and the keytabs `client.keytab` and `service.keytab` into a folder, prints
 * the port of the service, and for each request the name of its client.
 */
public final class KdcReferee {
  private static final String REALM = "LAKE.EXAMPLE";

  private KdcReferee() {}

  public static void main(String[] arguments) throws Exception {
    File folder = new File(arguments[0]);
    SimpleKdcServer centre = new SimpleKdcServer();
    centre.setKdcRealm(REALM);
    centre.setKdcHost("localhost");
    centre.setKdcPort(Integer.parseInt(arguments[1]));
    centre.setAllowUdp(false);
    centre.setWorkDir(folder);
    centre.init();
    centre.start();
    String service = "HTTP/localhost@" + REALM;
    centre.createPrincipals("lock@" + REALM, service);
    centre.exportPrincipal("lock@" + REALM, new File(folder, "client.keytab"));
    centre.exportPrincipal(service, new File(folder, "service.keytab"));
    Subject subject = login(service, new File(folder, "service.keytab"));
    HttpServer server =
        HttpServer.create(new InetSocketAddress(InetAddress.getByName("127.0.0.1"), 0), 0);
    server.createContext("/", exchange -> answer(exchange, subject, folder.toPath()));
    server.start();
    System.out.println(server.getAddress().getPort());
    System.out.flush();
    System.in.read(); // ends with the test
    System.exit(0);
  }

  private static Subject login(String principal, File keytab) throws Exception {
    Map<String, String> options = new HashMap<>();
    options.put("useKeyTab", "true");
    options.put("keyTab", keytab.getPath());
    options.put("principal", principal);
    options.put("storeKey", "true");
    options.put("doNotPrompt", "true");
    options.put("isInitiator", "false");
    AppConfigurationEntry[] entries = {
      new AppConfigurationEntry(
          "com.sun.security.auth.module.Krb5LoginModule",
          AppConfigurationEntry.LoginModuleControlFlag.REQUIRED,
          options)
    };
    Configuration configuration =
        new Configuration() {
          @Override
          public AppConfigurationEntry[] getAppConfigurationEntry(String name) {
            return entries;
          }
        };
    LoginContext context = new LoginContext("service", new Subject(), null, configuration);
    context.login();
    return context.getSubject();
  }

  private static void answer(HttpExchange exchange, Subject subject, Path folder)
      throws IOException {
    String given = exchange.getRequestHeaders().getFirst("Authorization");
    try {
      if (given == null || !given.startsWith("Negotiate ")) {
        exchange.getResponseHeaders().add("WWW-Authenticate", "Negotiate");
        send(exchange, 401, "who are you?".getBytes());
        return;
      }
      byte[] token = Base64.getDecoder().decode(given.substring("Negotiate ".length()));
      String client =
          Subject.doAs(subject, (PrivilegedExceptionAction<String>) () -> accept(exchange, token));
      System.out.println(client);
      System.out.flush();
      boolean isDownload =
          exchange.getRequestURI().getPath().contains("/secure/policies/download/");
      send(exchange, isDownload ? 200 : 500, Files.readAllBytes(folder.resolve("answer.json")));
    } catch (Exception error) {
      send(exchange, 403, String.valueOf(error).getBytes());
    }
  }

  private static String accept(HttpExchange exchange, byte[] token) throws Exception {
    GSSManager manager = GSSManager.getInstance();
    Oid[] mechanisms = {new Oid("1.3.6.1.5.5.2"), new Oid("1.2.840.113554.1.2.2")};
    GSSCredential own =
        manager.createCredential(
            null, GSSCredential.INDEFINITE_LIFETIME, mechanisms, GSSCredential.ACCEPT_ONLY);
    GSSContext context = manager.createContext(own);
    byte[] reply = context.acceptSecContext(token, 0, token.length);
    if (reply != null) {
      String text = Base64.getEncoder().encodeToString(reply);
      exchange.getResponseHeaders().add("WWW-Authenticate", "Negotiate " + text);
    }
    if (!context.isEstablished()) {
      throw new IllegalStateException("one token was not enough");
    }
    return context.getSrcName().toString();
  }

  private static void send(HttpExchange exchange, int status, byte[] body) throws IOException {
    exchange.sendResponseHeaders(status, body.length);
    exchange.getResponseBody().write(body);
    exchange.close();
  }
}
