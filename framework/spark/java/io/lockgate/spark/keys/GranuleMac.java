package io.lockgate.spark.keys;

import java.nio.ByteBuffer;
import java.security.GeneralSecurityException;
import java.security.InvalidAlgorithmParameterException;
import java.security.InvalidKeyException;
import javax.crypto.AEADBadTagException;
import javax.crypto.Cipher;
import javax.crypto.spec.GCMParameterSpec;
import javax.crypto.spec.SecretKeySpec;

/**
 * AES-256-GMAC over the stored bytes of a file, granule by granule; for one thread.
 *
 * <p>A tag is made as GMAC is defined: GCM without plaintext, the message as additional data. The
 * JDK copies additional data into a fresh array first, which halves the speed, so a tag is checked
 * otherwise: the granule is taken for a ciphertext and opened. GHASH sees the same blocks either
 * way; only its last block, the lengths of additional data and of ciphertext, differs, and GHASH is
 * linear: the tag of "n bytes of additional data" and that of "n bytes of ciphertext" differ by
 * (8n, 8n) times the hash key, whatever the bytes are (NIST SP 800-38D, section 6.4).
 */
public final class GranuleMac {
  public static final int GRANULE = 256 << 10;
  public static final int TAG_LENGTH = 16;
  public static final int KEY_LENGTH = 32;

  /** Stands for the number of a stream in the tags of a stripe's footer. */
  public static final int STRIPE_FOOTER = -1;

  private static final int TAG_BITS = 8 * TAG_LENGTH;

  /** Output of "decrypting" a granule: never looked at. */
  private static final ThreadLocal<byte[]> SCRATCH =
      ThreadLocal.withInitial(() -> new byte[GRANULE]);

  private final SecretKeySpec key;
  private final Cipher cipher;
  private final ByteBuffer nonce = ByteBuffer.allocate(12);
  private final long[] hashKey;
  private final long[] wholeGranule;
  private final byte[] tag = new byte[TAG_LENGTH];
  private final byte[] saved = new byte[TAG_LENGTH];

  public GranuleMac(byte[] macKey) {
    CipherWarmUp.authentication();
    try {
      key = new SecretKeySpec(macKey, "AES");
      cipher = Cipher.getInstance("AES/GCM/NoPadding");
      Cipher block = Cipher.getInstance("AES/ECB/NoPadding");
      block.init(Cipher.ENCRYPT_MODE, key);
      ByteBuffer zero = ByteBuffer.wrap(block.doFinal(new byte[16]));
      hashKey = new long[] {zero.getLong(), zero.getLong()};
    } catch (GeneralSecurityException failure) {
      throw new IllegalStateException("this JVM has no AES-GCM", failure);
    }
    wholeGranule = difference(GRANULE);
  }

  /**
   * The tag of a message in pieces; {@code high}, {@code middle} and {@code low} make the nonce,
   * used once for each key.
   */
  public byte[] tag(int high, int middle, int low, Iterable<ByteBuffer> message) {
    try {
      init(Cipher.ENCRYPT_MODE, high, middle, low);
      for (ByteBuffer part : message) {
        cipher.updateAAD(part);
      }
      return cipher.doFinal();
    } catch (GeneralSecurityException failure) {
      throw new IllegalStateException("a tag could not be computed", failure);
    }
  }

  /**
   * Tells whether a granule of at most {@link #GRANULE} bytes matches its tag. The bytes behind it
   * are changed for the time of the call.
   */
  public boolean matches(
      int stripe,
      int stream,
      int granule,
      byte[] bytes,
      int offset,
      int length,
      byte[] tags,
      int at) {
    long[] difference = length == GRANULE ? wholeGranule : difference(length);
    ByteBuffer expected = ByteBuffer.wrap(tags, at, TAG_LENGTH);
    ByteBuffer.wrap(tag)
        .putLong(expected.getLong() ^ difference[0])
        .putLong(expected.getLong() ^ difference[1]);
    int end = offset + length;
    if (end > bytes.length - TAG_LENGTH) {
      byte[] copy = new byte[length + TAG_LENGTH];
      System.arraycopy(bytes, offset, copy, 0, length);
      System.arraycopy(tag, 0, copy, length, TAG_LENGTH);
      return opens(stripe, stream, granule, copy, 0, length);
    }
    System.arraycopy(bytes, end, saved, 0, TAG_LENGTH);
    System.arraycopy(tag, 0, bytes, end, TAG_LENGTH);
    try {
      return opens(stripe, stream, granule, bytes, offset, length);
    } finally {
      System.arraycopy(saved, 0, bytes, end, TAG_LENGTH);
    }
  }

  private boolean opens(int stripe, int stream, int granule, byte[] bytes, int offset, int length) {
    try {
      init(Cipher.DECRYPT_MODE, stripe, stream, granule);
      cipher.doFinal(bytes, offset, length + TAG_LENGTH, SCRATCH.get(), 0);
      return true;
    } catch (AEADBadTagException mismatch) {
      return false;
    } catch (GeneralSecurityException failure) {
      throw new IllegalStateException("a tag could not be checked", failure);
    }
  }

  private void init(int mode, int high, int middle, int low)
      throws InvalidKeyException, InvalidAlgorithmParameterException {
    nonce.clear().putInt(high).putInt(middle).putInt(low);
    cipher.init(mode, key, new GCMParameterSpec(TAG_BITS, nonce.array()));
  }

  /** (8n, 8n) times the hash key in GF(2^128), in GCM's order of bits: bit 0 is the highest. */
  private long[] difference(int length) {
    long bits = 8L * length;
    long high = 0;
    long low = 0;
    long v0 = hashKey[0];
    long v1 = hashKey[1];
    for (int bit = 0; bit < 128; bit++) {
      long mask = -(bits >>> (63 - (bit & 63)) & 1);
      high ^= v0 & mask;
      low ^= v1 & mask;
      long carry = -(v1 & 1);
      v1 = v1 >>> 1 | v0 << 63;
      v0 = v0 >>> 1 ^ 0xe100000000000000L & carry;
    }
    return new long[] {high, low};
  }
}
