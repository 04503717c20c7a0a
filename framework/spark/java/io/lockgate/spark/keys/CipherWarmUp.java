package io.lockgate.spark.keys;

import com.sun.management.HotSpotDiagnosticMXBean;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.security.GeneralSecurityException;
import javax.crypto.Cipher;
import javax.crypto.spec.GCMParameterSpec;
import javax.crypto.spec.IvParameterSpec;
import javax.crypto.spec.SecretKeySpec;

/**
 * Warms this JVM's ciphers up before they are needed.
 *
 * <p>HotSpot replaces the inner loops of AES-CTR and GHASH by machine instructions only once their
 * callers have run some ten thousand times. Readers call them once a stream or granule, and would
 * work at a fortieth of the speed for the life of the JVM. A busy compiler may drop what it was
 * asked for, so warming ends when a message of the size that readers have is fast. A JVM that never
 * does so, as one without its second compiler, is left as it is: warming would only cost seconds.
 */
public final class CipherWarmUp {
  private static final int MESSAGE = 64;
  private static final int ROUND = 4_000;
  private static final int UPDATES = 8_000;
  private static final int LEAST_ROUNDS = 5;
  private static final int MOST_ROUNDS = 30;

  /**
   * The JDK opens messages of more than 64 KiB along another path, in six parts, which has to be
   * warmed too.
   */
  private static final int LONG_MESSAGE = (64 << 10) + MESSAGE;

  private static final int LONG_ROUND = 40;
  private static final int SAMPLE = GranuleMac.GRANULE;

  /**
   * A sample at 1 GB/s: ten times what the slow loop reaches, a quarter of what the fast one does.
   */
  private static final long FAST_NANOS = SAMPLE;

  private static final int SECOND_COMPILER = 4;

  private static boolean decryption = !canBecomeFast();
  private static boolean authentication = decryption;

  private CipherWarmUp() {}

  private static boolean canBecomeFast() {
    try {
      HotSpotDiagnosticMXBean machine =
          ManagementFactory.getPlatformMXBean(HotSpotDiagnosticMXBean.class);
      int level = Integer.parseInt(machine.getVMOption("TieredStopAtLevel").getValue());
      return level >= SECOND_COMPILER
          && Boolean.parseBoolean(machine.getVMOption("UseAES").getValue());
    } catch (RuntimeException | LinkageError unknown) {
      return true; // another kind of JVM, which may be as slow before it is warm
    }
  }

  /** Warms both in a thread of its own, while an executor waits for its first task. */
  public static void start() {
    Thread thread =
        new Thread(
            () -> {
              decryption();
              authentication();
            },
            "lockgate-cipher-warm-up");
    thread.setDaemon(true);
    thread.start();
  }

  /** Warms AES-CTR, once. */
  static synchronized void decryption() {
    if (decryption) {
      return;
    }
    decryption = true;
    try {
      Cipher cipher = Cipher.getInstance("AES/CTR/NoPadding");
      cipher.init(
          Cipher.DECRYPT_MODE,
          new SecretKeySpec(new byte[16], "AES"),
          new IvParameterSpec(new byte[16]));
      ByteBuffer small = ByteBuffer.allocate(MESSAGE);
      ByteBuffer sample = ByteBuffer.allocate(SAMPLE);
      ByteBuffer out = ByteBuffer.allocate(SAMPLE);
      for (int round = 1; round <= MOST_ROUNDS; round++) {
        for (int i = 0; i < UPDATES; i++) {
          cipher.update(small.clear(), out.clear());
        }
        if (round >= LEAST_ROUNDS
            && nanos(cipher, sample, out) < FAST_NANOS
            && nanos(cipher, sample, out) < FAST_NANOS) {
          return;
        }
      }
    } catch (GeneralSecurityException failure) {
      throw new IllegalStateException("this JVM has no AES-CTR", failure);
    }
  }

  private static long nanos(Cipher cipher, ByteBuffer message, ByteBuffer out)
      throws GeneralSecurityException {
    long start = System.nanoTime();
    cipher.update(message.clear(), out.clear());
    return System.nanoTime() - start;
  }

  /** Warms AES-GCM, once: as long as it takes, for the compiler may be busy, but within bounds. */
  static synchronized void authentication() {
    if (authentication) {
      return;
    }
    authentication = true;
    try {
      Opener opener = new Opener();
      byte[] small = opener.sealed(MESSAGE);
      byte[] odd = opener.sealed(MESSAGE - 3);
      byte[] large = opener.sealed(LONG_MESSAGE);
      byte[] sample = opener.sealed(SAMPLE);
      byte[] out = new byte[SAMPLE];
      for (int round = 1; round <= MOST_ROUNDS; round++) {
        boolean first = round <= LEAST_ROUNDS;
        for (int i = 0; i < (first ? ROUND : LONG_ROUND); i++) {
          opener.open(first ? i % 8 == 0 ? odd : small : large, out);
        }
        if (!first
            && opener.nanos(sample, out) < FAST_NANOS
            && opener.nanos(sample, out) < FAST_NANOS) {
          return;
        }
      }
    } catch (GeneralSecurityException failure) {
      throw new IllegalStateException("this JVM has no AES-GCM", failure);
    }
  }

  /** Opens messages as readers do, under a key that protects nothing. */
  private static final class Opener {
    private final Cipher cipher = Cipher.getInstance("AES/GCM/NoPadding");
    private final SecretKeySpec key = new SecretKeySpec(new byte[GranuleMac.KEY_LENGTH], "AES");
    private int sealed;

    Opener() throws GeneralSecurityException {}

    private static GCMParameterSpec nonce(int number) {
      byte[] nonce = new byte[12];
      nonce[0] = (byte) number;
      return new GCMParameterSpec(8 * GranuleMac.TAG_LENGTH, nonce);
    }

    byte[] sealed(int length) throws GeneralSecurityException {
      cipher.init(Cipher.ENCRYPT_MODE, key, nonce(++sealed));
      byte[] message = cipher.doFinal(new byte[length]);
      byte[] numbered = java.util.Arrays.copyOf(message, message.length + 1);
      numbered[message.length] = (byte) sealed;
      return numbered;
    }

    void open(byte[] message, byte[] out) throws GeneralSecurityException {
      int length = message.length - 1;
      cipher.init(Cipher.DECRYPT_MODE, key, nonce(message[length]));
      cipher.doFinal(message, 0, length, out, 0);
    }

    long nanos(byte[] message, byte[] out) throws GeneralSecurityException {
      long start = System.nanoTime();
      open(message, out);
      return System.nanoTime() - start;
    }
  }
}
