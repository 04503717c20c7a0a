package io.lockgate.spark.keys;

import java.io.IOException;
import java.security.Key;
import java.util.List;
import java.util.Random;
import org.apache.hadoop.conf.Configuration;
import org.apache.orc.EncryptionAlgorithm;
import org.apache.orc.impl.HadoopShims;
import org.apache.orc.impl.KeyProvider;
import org.apache.orc.impl.LocalKey;

/**
 * ORC's key provider for {@code orc.key.provider = lockgate:<scope>}: local keys come from {@link
 * KeyService}.
 *
 * <p>ORC keeps providers in a static map under the whole of that setting, so each scope has its
 * own. Lockgate's own readers and writers are handed their provider and do not use that map;
 * Spark's ORC source does.
 */
public final class LockgateKeys implements KeyProvider.Factory {
  private static final String KIND = "lockgate:";

  @Override
  public KeyProvider create(String kind, Configuration conf, Random random) {
    return kind.startsWith(KIND) ? of(kind.substring(KIND.length())) : null;
  }

  /**
   * A provider of a scope; null scope: one that has no key, so that readers see masks.
   *
   * <p>Made for each file and kept nowhere: scopes come and go with the sessions of a server.
   */
  public static KeyProvider of(String scope) {
    CipherWarmUp.decryption();
    return new Scoped(scope);
  }

  /** Local keys within one scope; it holds none itself. */
  private static final class Scoped implements KeyProvider {
    private final String scope;

    Scoped(String scope) {
      this.scope = scope;
    }

    @Override
    public List<String> getKeyNames() {
      return List.of();
    }

    @Override
    public HadoopShims.KeyMetadata getCurrentKeyVersion(String name) {
      KeyService.Created key = created(name);
      return new HadoopShims.KeyMetadata(
          key.name(), key.version(), EncryptionAlgorithm.valueOf(key.orcAlgorithm()));
    }

    @Override
    public LocalKey createLocalKey(HadoopShims.KeyMetadata key) throws IOException {
      // Of the version that the file names already, even if the key was rolled a moment ago.
      KeyService.Created fresh =
          KeyService.create(scope, key.getKeyName(), key.getVersion(), key.getAlgorithm().name());
      return new LocalKey(key.getAlgorithm(), fresh.plain(), fresh.encrypted());
    }

    private KeyService.Created created(String name) {
      if (scope == null) {
        throw new IllegalStateException(
            "KeyMissingError: the table has no key scope, so nothing can be encrypted with key "
                + name);
      }
      return KeyService.create(scope, name);
    }

    @Override
    public Key decryptLocalKey(HadoopShims.KeyMetadata key, byte[] encrypted) {
      return scope == null
          ? null
          : KeyService.unwrap(
              scope, key.getKeyName(), key.getVersion(), key.getAlgorithm().name(), encrypted);
    }

    @Override
    public HadoopShims.KeyProviderKind getKind() {
      return HadoopShims.KeyProviderKind.HADOOP;
    }
  }
}
