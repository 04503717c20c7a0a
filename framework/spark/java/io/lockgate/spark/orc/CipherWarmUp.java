package io.lockgate.spark.orc;

import java.security.GeneralSecurityException;
import javax.crypto.Cipher;
import javax.crypto.spec.GCMParameterSpec;
import javax.crypto.spec.IvParameterSpec;
import javax.crypto.spec.SecretKeySpec;

/**
 * Makes this JVM's ciphers fast before they are needed.
 *
 * <p>HotSpot replaces the inner loops of AES-CTR and GHASH by machine instructions only once their callers have run some ten
 * thousand times. Readers call them once a stream or granule, and would work at a fortieth of the speed for the life of the JVM.
 */
final class CipherWarmUp {
  private static final int MESSAGE = 64;
  private static final int ROUND = 4_000;
  private static final int LEAST_ROUNDS = 5;
  private static final int MOST_ROUNDS = 20;
  private static final int SAMPLE = 32 << 10;
  /** A sample at 1 GB/s: ten times what the slow loop reaches, a quarter of what the fast one does. */
  private static final long FAST_NANOS = SAMPLE;

  private static boolean decryption;
  private static boolean authentication;

  private CipherWarmUp() {}

  /** Warms AES-CTR, once. */
  static synchronized void decryption() {
    if (decryption) {
      return;
    }
    decryption = true;
    try {
      Cipher cipher = Cipher.getInstance("AES/CTR/NoPadding");
      cipher.init(Cipher.DECRYPT_MODE, new SecretKeySpec(new byte[16], "AES"), new IvParameterSpec(new byte[16]));
      byte[] in = new byte[MESSAGE];
      byte[] out = new byte[MESSAGE];
      for (int i = 0; i < 40_000; i++) {
        cipher.update(in, 0, in.length, out, 0);
      }
    } catch (GeneralSecurityException failure) {
      throw new IllegalStateException("this JVM has no AES-CTR", failure);
    }
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
      byte[] sample = opener.sealed(SAMPLE);
      byte[] out = new byte[SAMPLE];
      for (int round = 1; round <= MOST_ROUNDS; round++) {
        for (int i = 0; i < ROUND; i++) {
          opener.open(i % 8 == 0 ? odd : small, out);
        }
        if (round >= LEAST_ROUNDS && opener.nanos(sample, out) < FAST_NANOS && opener.nanos(sample, out) < FAST_NANOS) {
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
