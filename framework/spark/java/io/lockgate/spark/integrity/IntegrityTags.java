package io.lockgate.spark.integrity;

import io.lockgate.spark.keys.GranuleMac;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.orc.OrcProto;
import org.apache.orc.protobuf.ByteString;

/**
 * The integrity tags of a file, as its footer carries them: version 1 of the construction that
 * docs/integrity.md describes.
 *
 * @param wraps the MAC key, wrapped for each key of the file
 * @param first the number of each stripe's first tag, and the number of all tags
 * @param tags all stripes' tags
 * @param tailTag the tag of what lies behind the stripes
 */
record IntegrityTags(List<Wrap> wraps, int[] first, byte[] tags, byte[] tailTag) {
  static final String HEADER_ITEM = "lockgate.integrity";
  static final String TAGS_ITEM = "lockgate.integrity.tags";
  static final String ATTRIBUTE = "lockgate.integrity";
  static final String PRESENT = "1";
  private static final byte VERSION = 1;

  /** The MAC key under the local key of one variant, the first that uses the key. */
  record Wrap(int key, int variant, byte[] wrapped) {}

  /**
   * The tags that a file carries, or null where it has none; IntegrityException where they are
   * incomplete.
   */
  static IntegrityTags of(StoredTail tail) throws IntegrityException {
    OrcProto.Footer footer = tail.footer();
    ByteString header = item(tail, HEADER_ITEM);
    ByteString tags = item(tail, TAGS_ITEM);
    boolean announced = announced(tail);
    if (header == null && tags == null && !announced) {
      return null;
    }
    if (header == null || tags == null || !announced) {
      throw stripped(tail, "a part of them is missing");
    }
    if (tail.storedContent() == null) {
      throw stripped(tail, "the footer is compressed");
    }
    IntegrityTags found;
    try {
      found = parse(header.asReadOnlyByteBuffer(), tags.toByteArray());
    } catch (BufferUnderflowException | IllegalArgumentException failure) {
      throw stripped(tail, "their header cannot be read");
    }
    List<int[]> used = variants(footer.getEncryption());
    if (found.first.length != footer.getStripesCount() + 1
        || used.isEmpty()
        || found.wraps.size() != used.size()) {
      throw stripped(tail, "their header does not fit the file");
    }
    for (int i = 0; i < used.size(); i++) {
      Wrap wrap = found.wraps.get(i);
      if (wrap.key != used.get(i)[0] || wrap.variant != used.get(i)[1]) {
        throw stripped(tail, "their header does not fit the file's keys");
      }
    }
    checkStripes(tail);
    return found;
  }

  private static IntegrityException stripped(StoredTail tail, String what) {
    return new IntegrityException(
        tail.path(), "its integrity tags are damaged or stripped: " + what);
  }

  private static ByteString item(StoredTail tail, String name) throws IntegrityException {
    ByteString value = null;
    for (OrcProto.UserMetadataItem item : tail.footer().getMetadataList()) {
      if (item.getName().equals(name)) {
        if (value != null) {
          throw stripped(tail, "there are two of them");
        }
        value = item.getValue();
      }
    }
    return value;
  }

  private static boolean announced(StoredTail tail) throws IntegrityException {
    boolean announced = false;
    List<OrcProto.Type> types = tail.footer().getTypesList();
    for (OrcProto.StringPair attribute :
        types.isEmpty() ? List.<OrcProto.StringPair>of() : types.get(0).getAttributesList()) {
      if (attribute.getKey().equals(ATTRIBUTE)) {
        if (announced || !attribute.getValue().equals(PRESENT)) {
          throw stripped(tail, "the root type announces another version");
        }
        announced = true;
      }
    }
    return announced;
  }

  private static IntegrityTags parse(ByteBuffer header, byte[] tags) {
    if (header.get() != VERSION || header.getInt() != GranuleMac.GRANULE) {
      throw new IllegalArgumentException("another version");
    }
    List<Wrap> wraps = new ArrayList<>();
    for (int left = Short.toUnsignedInt(header.getShort()); left > 0; left--) {
      wraps.add(
          new Wrap(
              Short.toUnsignedInt(header.getShort()),
              Short.toUnsignedInt(header.getShort()),
              bytes(header, MacKeys.WRAPPED_LENGTH)));
    }
    int stripes = header.getInt();
    if (stripes < 0 || stripes > header.remaining() / Integer.BYTES) {
      throw new IllegalArgumentException("too many stripes");
    }
    int[] first = new int[stripes + 1];
    long count = 0;
    for (int i = 1; i <= stripes; i++) {
      count += Integer.toUnsignedLong(header.getInt());
      first[i] = (int) Math.min(count, Integer.MAX_VALUE);
    }
    byte[] tailTag = bytes(header, GranuleMac.TAG_LENGTH);
    if (header.hasRemaining() || count * GranuleMac.TAG_LENGTH != tags.length) {
      throw new IllegalArgumentException("another number of tags");
    }
    return new IntegrityTags(wraps, first, tags, tailTag);
  }

  private static byte[] bytes(ByteBuffer from, int length) {
    byte[] bytes = new byte[length];
    from.get(bytes);
    return bytes;
  }

  /** The header, with the tail tag as its last bytes. */
  byte[] header() {
    int stripes = first.length - 1;
    ByteBuffer header =
        ByteBuffer.allocate(
            7
                + wraps.size() * (4 + MacKeys.WRAPPED_LENGTH)
                + 4
                + 4 * stripes
                + GranuleMac.TAG_LENGTH);
    header.put(VERSION).putInt(GranuleMac.GRANULE).putShort((short) wraps.size());
    for (Wrap wrap : wraps) {
      header.putShort((short) wrap.key).putShort((short) wrap.variant).put(wrap.wrapped);
    }
    header.putInt(stripes);
    for (int i = 0; i < stripes; i++) {
      header.putInt(first[i + 1] - first[i]);
    }
    return header.put(tailTag).array();
  }

  /**
   * For each key that columns are encrypted with, in order: its number and that of its first
   * variant.
   */
  static List<int[]> variants(OrcProto.Encryption encryption) {
    int[] variants = new int[encryption.getKeyCount()];
    Arrays.fill(variants, -1);
    for (int variant = encryption.getVariantsCount() - 1; variant >= 0; variant--) {
      int key = encryption.getVariants(variant).getKey();
      if (key >= 0 && key < variants.length) {
        variants[key] = variant;
      }
    }
    List<int[]> used = new ArrayList<>();
    for (int key = 0; key < variants.length; key++) {
      if (variants[key] >= 0) {
        used.add(new int[] {key, variants[key]});
      }
    }
    return used;
  }

  /** Stripes lie one behind the other, and nothing between the last one and the tail. */
  private static void checkStripes(StoredTail tail) throws IntegrityException {
    long end = 3;
    for (OrcProto.StripeInformation stripe : tail.footer().getStripesList()) {
      boolean behind = stripe.getOffset() >= end;
      end = stripe.getOffset();
      for (long length :
          List.of(stripe.getIndexLength(), stripe.getDataLength(), stripe.getFooterLength())) {
        behind &= length >= 0 && length <= tail.start() - end;
        end += behind ? length : 0;
      }
      if (!behind) {
        throw new IntegrityException(tail.path(), "its stripes overlap: the footer is damaged");
      }
    }
    if (end != tail.start() || tail.footer().getContentLength() != end) {
      throw new IntegrityException(
          tail.path(), "its stripes do not end where its tail begins: the footer is damaged");
    }
  }

  /** The tag of a tail whose footer has the given content, in which {@code header} stands. */
  static byte[] tailTag(
      GranuleMac mac,
      ByteBuffer beforeFooter,
      byte[] content,
      byte[] header,
      ByteBuffer behindFooter) {
    int tagAt = tailTagAt(content, header);
    ByteBuffer before = ByteBuffer.wrap(content, 0, tagAt);
    int behind = tagAt + GranuleMac.TAG_LENGTH;
    ByteBuffer after = ByteBuffer.wrap(content, behind, content.length - behind);
    ByteBuffer blank = ByteBuffer.allocate(GranuleMac.TAG_LENGTH);
    return mac.tag(-1, -1, 0, List.of(beforeFooter, before, blank, after, behindFooter));
  }

  /**
   * Returns where the tail tag lies in a footer's content: the last bytes of the first occurrence
   * of the header.
   */
  static int tailTagAt(byte[] content, byte[] header) {
    for (int at = 0; at <= content.length - header.length; at++) {
      if (Arrays.equals(content, at, at + header.length, header, 0, header.length)) {
        return at + header.length - GranuleMac.TAG_LENGTH;
      }
    }
    throw new IllegalStateException("a footer does not hold its own user metadata");
  }
}
