package io.lockgate.spark.files.masks;

import java.io.IOException;
import java.net.URL;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Enumeration;
import java.util.HexFormat;
import java.util.List;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hive.ql.exec.vector.BytesColumnVector;
import org.apache.orc.DataMask;
import org.apache.orc.DataMaskDescription;
import org.apache.orc.OrcFile;
import org.apache.orc.TypeDescription;
import org.apache.orc.TypeDescription.Category;
import org.apache.orc.Writer;

/**
 * The masks of encrypted columns, equal to those that Lockgate's Python writes.
 *
 * <p>ORC's own fail or go wrong for strings and small decimals under {@code redact}, for binaries
 * under {@code sha256}, inside lists, maps and structs with nulls, and for timestamps outside of
 * UTC (orc-core 2.3.0).
 */
public final class Masks implements DataMask.Provider {
  private static final String SERVICE = "META-INF/services/org.apache.orc.DataMask$Provider";

  /**
   * Opens a writer whose masks are these. ORC asks Java's service loader, which would find ORC's
   * own before any other.
   */
  public static Writer createWriter(Path path, OrcFile.WriterOptions options) throws IOException {
    Thread thread = Thread.currentThread();
    ClassLoader before = thread.getContextClassLoader();
    thread.setContextClassLoader(new PreferOwnMasks(before));
    try {
      return OrcFile.createWriter(path, options);
    } finally {
      thread.setContextClassLoader(before);
    }
  }

  /** A class loader that names this provider before those of its parent. */
  private static final class PreferOwnMasks extends ClassLoader {
    PreferOwnMasks(ClassLoader parent) {
      super(parent);
    }

    @Override
    public Enumeration<URL> getResources(String name) throws IOException {
      if (!name.equals(SERVICE)) {
        return super.getResources(name);
      }
      List<URL> all = new ArrayList<>();
      all.add(Masks.class.getResource("/META-INF/lockgate/masks"));
      all.addAll(Collections.list(super.getResources(name)));
      return Collections.enumeration(all);
    }

    @Override
    protected Class<?> findClass(String name) throws ClassNotFoundException {
      if (name.equals(Masks.class.getName())) {
        return Masks.class;
      }
      throw new ClassNotFoundException(name);
    }
  }

  @Override
  public DataMask build(
      DataMaskDescription description, TypeDescription schema, DataMask.MaskOverrides overrides) {
    return switch (description.getName()) {
      case "nullify" -> MaskTree.NULLIFY;
      case "sha256" -> MaskTree.of(schema, overrides, sha256());
      case "redact" -> MaskTree.of(schema, overrides, new RedactMask(description.getParameters()));
      default -> null;
    };
  }

  /**
   * Strings become the upper-case hexadecimal digest of their UTF-8, binaries the digest of their
   * bytes, all else null.
   */
  private static MaskTree.Leaves sha256() {
    MessageDigest digest;
    try {
      digest = MessageDigest.getInstance("SHA-256");
    } catch (NoSuchAlgorithmException absent) {
      throw new IllegalStateException("this JVM has no SHA-256", absent);
    }
    HexFormat hex = HexFormat.of().withUpperCase();
    return type -> {
      Category category = type.getCategory();
      boolean text =
          category == Category.STRING || category == Category.VARCHAR || category == Category.CHAR;
      if (!text && category != Category.BINARY) {
        return null;
      }
      return (from, to, row) -> {
        BytesColumnVector source = (BytesColumnVector) from;
        digest.update(source.vector[row], source.start[row], source.length[row]);
        byte[] found = digest.digest();
        byte[] mask =
            text
                ? hex.formatHex(found).getBytes(java.nio.charset.StandardCharsets.US_ASCII)
                : found;
        ((BytesColumnVector) to).setRef(row, mask, 0, mask.length);
      };
    };
  }
}
