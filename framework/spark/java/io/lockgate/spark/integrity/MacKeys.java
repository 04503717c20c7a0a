package io.lockgate.spark.integrity;

import io.lockgate.spark.keys.GranuleMac;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import javax.crypto.AEADBadTagException;
import javax.crypto.Cipher;
import javax.crypto.Mac;
import javax.crypto.spec.GCMParameterSpec;
import javax.crypto.spec.SecretKeySpec;

/**
 * Wraps and unwraps a file's MAC key under keys derived from the local keys of its encrypted
 * columns.
 */
final class MacKeys {
  static final int WRAPPED_LENGTH = GranuleMac.KEY_LENGTH + GranuleMac.TAG_LENGTH;
  private static final byte[] CONTEXT =
      "lockgate.orc.integrity.v1".getBytes(StandardCharsets.US_ASCII);

  private MacKeys() {}

  static byte[] wrap(byte[] macKey, byte[] localKey, String keyName) {
    try {
      return cipher(Cipher.ENCRYPT_MODE, localKey, keyName).doFinal(macKey);
    } catch (GeneralSecurityException failure) {
      throw new IllegalStateException("a MAC key could not be wrapped", failure);
    }
  }

  /**
   * The MAC key, or null where the wrapped bytes are damaged or were made under another local key.
   */
  static byte[] unwrap(byte[] wrapped, byte[] localKey, String keyName) {
    try {
      return cipher(Cipher.DECRYPT_MODE, localKey, keyName).doFinal(wrapped);
    } catch (AEADBadTagException damaged) {
      return null;
    } catch (GeneralSecurityException failure) {
      throw new IllegalStateException("a MAC key could not be unwrapped", failure);
    }
  }

  private static Cipher cipher(int mode, byte[] localKey, String keyName)
      throws GeneralSecurityException {
    Cipher cipher = Cipher.getInstance("AES/GCM/NoPadding");
    // The derived key seals one message only, since local keys are made afresh for every file: a
    // constant nonce is safe.
    GCMParameterSpec nonce = new GCMParameterSpec(8 * GranuleMac.TAG_LENGTH, new byte[12]);
    cipher.init(mode, new SecretKeySpec(derive(localKey, keyName), "AES"), nonce);
    cipher.updateAAD(CONTEXT);
    return cipher;
  }

  /** HKDF-SHA256 without salt, for one block of output (RFC 5869). */
  private static byte[] derive(byte[] localKey, String keyName) throws GeneralSecurityException {
    Mac hmac = Mac.getInstance("HmacSHA256");
    hmac.init(new SecretKeySpec(new byte[32], "HmacSHA256"));
    hmac.init(new SecretKeySpec(hmac.doFinal(localKey), "HmacSHA256"));
    hmac.update(CONTEXT);
    hmac.update(keyName.getBytes(StandardCharsets.UTF_8));
    return hmac.doFinal(new byte[] {1});
  }
}
