package io.lockgate.spark.integrity;

import io.lockgate.spark.keys.GranuleMac;
import io.lockgate.spark.keys.KeyService;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.security.Key;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.orc.OrcProto;
import org.apache.orc.impl.KeyProvider;

/** A table's demands on the integrity tags of its encrypted files. */
public enum Integrity {
  /** Every encrypted file has tags, and they match. */
  REQUIRE,
  /** Tags that are there match. */
  VERIFY,
  /** Tags are not looked at. */
  IGNORE;

  /**
   * Keys that a provider was found not to hold, by provider and name: asked for last, for each is a
   * question to the driver, and one key of a file is enough.
   */
  private static final Set<List<Object>> MISSED = ConcurrentHashMap.newKeySet();

  private static final int MOST_MISSED = 4096;

  public static Integrity of(String option) {
    return valueOf(option.toUpperCase(Locale.ROOT));
  }

  /**
   * Checks a file's tail, and answers what checks the rest; null where there is nothing to check
   * by: the file is not encrypted, has no tags where none are required, or no key is at hand, so
   * that masks are read.
   */
  VerifiedFile authenticate(StoredTail tail, KeyProvider keys) throws IOException {
    IntegrityTags tags = this == IGNORE ? null : IntegrityTags.of(tail);
    if (tags == null) {
      if (this == REQUIRE && tail.footer().getEncryption().getVariantsCount() > 0) {
        throw new IntegrityException(
            tail.path(),
            "it has encrypted columns but no integrity tags, which the table requires (option"
                + " orc.integrity): it was not written by Lockgate, or its tags were stripped");
      }
      return null;
    }
    byte[] key = macKey(tail, tags, keys);
    if (key == null) {
      return null;
    }
    GranuleMac mac = new GranuleMac(key);
    ByteBuffer behind = tail.behindFooter();
    byte[] tag =
        IntegrityTags.tailTag(
            mac, tail.beforeFooter(), tail.storedContent(), tags.header(), behind);
    if (!MessageDigest.isEqual(tag, tags.tailTag())) {
      throw new IntegrityException(
          tail.path(),
          "the bytes from "
              + tail.start()
              + " to its end (footer and statistics) do not"
              + " match their integrity tag: they were damaged or changed after they were written");
    }
    return new VerifiedFile(tail, tags, mac);
  }

  /** The file's MAC key by the first key at hand; null where none is, and none is required. */
  private byte[] macKey(StoredTail tail, IntegrityTags tags, KeyProvider keys) throws IOException {
    OrcProto.Encryption encryption = tail.footer().getEncryption();
    IOException wrong = null;
    KeyService.KeyServiceException refused = null;
    List<IntegrityTags.Wrap> wraps = new ArrayList<>(tags.wraps());
    wraps.sort(Comparator.comparing(wrap -> MISSED.contains(missed(keys, encryption, wrap))));
    for (IntegrityTags.Wrap wrap : wraps) {
      try {
        Key local = KeyCheck.footerKey(encryption, wrap.variant(), keys);
        if (local != null) {
          KeyCheck.verify(tail, wrap.variant(), local);
          MISSED.remove(missed(keys, encryption, wrap));
          return unwrapped(tail, wrap, local);
        }
        if (MISSED.size() > MOST_MISSED) {
          MISSED.clear();
        }
        MISSED.add(missed(keys, encryption, wrap));
      } catch (KeyCheck.WrongKeyException failure) {
        wrong = failure;
      } catch (KeyService.KeyServiceException failure) {
        if (!failure.missing() && !failure.denied()) {
          throw failure;
        }
        refused = refused == null || failure.missing() ? failure : refused;
      }
    }
    if (wrong != null) {
      throw wrong;
    } else if (refused != null && (this == REQUIRE || refused.missing())) {
      throw refused;
    } else if (this == REQUIRE) {
      throw new IntegrityException(
          tail.path(),
          "none of the keys held opens it, so that its integrity tags, which the table"
              + " requires (option orc.integrity), cannot be checked");
    }
    return null;
  }

  private static List<Object> missed(
      KeyProvider keys, OrcProto.Encryption encryption, IntegrityTags.Wrap wrap) {
    return List.of(keys, encryption.getKey(wrap.key()).getKeyName());
  }

  private static byte[] unwrapped(StoredTail tail, IntegrityTags.Wrap wrap, Key local)
      throws IntegrityException {
    String name = tail.footer().getEncryption().getKey(wrap.key()).getKeyName();
    byte[] key = MacKeys.unwrap(wrap.wrapped(), local.getEncoded(), name);
    if (key == null) {
      throw new IntegrityException(
          tail.path(), "its integrity tags are damaged: their key does not open");
    }
    return key;
  }
}
