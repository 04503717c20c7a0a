package io.lockgate.spark.keys;

import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.bridge.Failure;
import io.lockgate.spark.enforcement.parts.DriverLink;
import io.lockgate.spark.messages.CreateKeyRequest;
import io.lockgate.spark.messages.CreatedKey;
import io.lockgate.spark.messages.Operation;
import io.lockgate.spark.messages.Operations;
import io.lockgate.spark.messages.UnwrapRequest;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.Map;
import javax.crypto.spec.SecretKeySpec;

/**
 * Local keys of files, unwrapped and created by the driver's Python, which alone holds master keys.
 *
 * <p>Unwrapped keys stay in this JVM's memory, the newest few thousand of them; nothing here prints
 * one.
 */
public final class KeyService {
  private static final int CACHED = 4096;
  private static final String UNREACHABLE = "KeyServiceError";
  private static final Map<String, SecretKeySpec> UNWRAPPED =
      new LinkedHashMap<>(64, 0.75f, true) {
        @Override
        protected boolean removeEldestEntry(Map.Entry<String, SecretKeySpec> eldest) {
          return size() > CACHED;
        }
      };

  /** The way to the driver: set on executors by the plugin, null in the driver itself. */
  private static volatile DriverLink driver;

  private KeyService() {}

  /** Called by the plugin when an executor starts. */
  public static void reachDriverBy(DriverLink link) {
    driver = link;
  }

  /** A fresh local key under the current version of a master key. */
  public static final class Created {
    private final String name;
    private final int version;
    private final String algorithm;
    private final byte[] plain;
    private final byte[] encrypted;

    Created(CreatedKey key) {
      this.name = key.name();
      this.version = Math.toIntExact(key.version());
      this.algorithm = key.algorithm();
      this.plain = Base64.getDecoder().decode(key.plain());
      this.encrypted = Base64.getDecoder().decode(key.encrypted());
    }

    String name() {
      return name;
    }

    int version() {
      return version;
    }

    /** The cipher's name as ORC spells it. */
    String orcAlgorithm() {
      return algorithm.startsWith("AES_CTR_") ? algorithm : "AES_CTR_" + plain.length * 8;
    }

    byte[] plain() {
      return plain;
    }

    byte[] encrypted() {
      return encrypted;
    }

    @Override
    public String toString() {
      return "local key under " + name + "@" + version;
    }
  }

  /**
   * Unwraps a file's local key; null if the scope has no such master key. Any other failure is an
   * exception.
   */
  public static SecretKeySpec unwrap(
      String scope, String name, int version, String algorithm, byte[] encrypted) {
    String wrapped = Base64.getEncoder().encodeToString(encrypted);
    String id = id(scope, name, version, algorithm, wrapped);
    synchronized (UNWRAPPED) {
      SecretKeySpec key = UNWRAPPED.get(id);
      if (key != null) {
        return key;
      }
    }
    UnwrapRequest request = new UnwrapRequest(scope, name, version, algorithm, wrapped);
    String plain = ask(Operations.KEYS_UNWRAP, request).plain();
    if (plain == null) {
      return null;
    }
    SecretKeySpec key = new SecretKeySpec(Base64.getDecoder().decode(plain), "AES");
    keep(id, key);
    return key;
  }

  private static String id(
      String scope, String name, int version, String algorithm, String wrapped) {
    return scope + '\n' + name + '@' + version + '\n' + algorithm + '\n' + wrapped;
  }

  private static void keep(String id, SecretKeySpec key) {
    synchronized (UNWRAPPED) {
      UNWRAPPED.put(id, key);
    }
  }

  /**
   * Makes a local key under the current version of the named master key; unwrapping it then takes
   * no question.
   */
  public static Created create(String scope, String name) {
    return create(new CreateKeyRequest(scope, name, null, null));
  }

  /** Makes a local key under one version of the named master key. */
  public static Created create(String scope, String name, int version, String algorithm) {
    return create(new CreateKeyRequest(scope, name, (long) version, algorithm));
  }

  private static Created create(CreateKeyRequest request) {
    CreatedKey reply = ask(Operations.KEYS_CREATE, request);
    Created key = new Created(reply);
    keep(
        id(request.scope(), key.name(), key.version(), key.orcAlgorithm(), reply.encrypted()),
        new SecretKeySpec(key.plain(), "AES"));
    return key;
  }

  private static <Q, A> A ask(Operation<Q, A> question, Q request) {
    DriverLink link = driver;
    if (link == null && !inDriver()) {
      throw new KeyServiceException(
          UNREACHABLE,
          "this executor cannot ask the driver for keys: start Spark with"
              + " spark.plugins=io.lockgate.spark.LockgatePlugin (lockgate.configure sets it)",
          null);
    }
    try {
      return link == null ? Bridge.ask(question, request) : link.ask(question, request);
    } catch (Exception failure) {
      throw new KeyServiceException(kind(failure), failure.getMessage(), failure);
    }
  }

  /** The class of the error, as Python names it. */
  private static String kind(Exception failure) {
    if (failure instanceof DriverLink.RefusedException refused) {
      return refused.kind();
    }
    return failure instanceof Failure named && named.pythonType() != null
        ? named.pythonType()
        : UNREACHABLE;
  }

  private static boolean inDriver() {
    org.apache.spark.SparkEnv env = org.apache.spark.SparkEnv.get();
    return env == null || env.executorId().equals("driver");
  }

  /**
   * Raised when the driver does not hand a key out: denied, missing for a rewrite, or not to be
   * reached.
   */
  public static final class KeyServiceException extends RuntimeException {
    private final String kind;

    KeyServiceException(String kind, String message, Throwable cause) {
      super(kind + ": " + message, cause);
      this.kind = kind;
    }

    /** Tells whether the driver answered that this session may not have the key. */
    public boolean denied() {
      return kind.equals("KeyDeniedError");
    }

    /**
     * Tells whether the driver answered that it has no such key, or not this version of it, though
     * masks would not do.
     */
    public boolean missing() {
      return kind.equals("KeyMissingError");
    }
  }
}
