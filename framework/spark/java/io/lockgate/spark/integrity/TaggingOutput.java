package io.lockgate.spark.integrity;

import io.lockgate.spark.keys.GranuleMac;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.security.Key;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.fs.Path;
import org.apache.orc.CompressionKind;
import org.apache.orc.OrcProto;
import org.apache.orc.StripeInformation;
import org.apache.orc.impl.KeyProvider;
import org.apache.orc.protobuf.ByteString;

/**
 * Takes the bytes of an encrypted ORC file in their order and writes them with integrity tags.
 *
 * <p>What is being written of a stripe is held until the stripe is complete, since its footer,
 * which tells where its streams lie, comes last. The file's tail is held until the end, and its
 * footer written again with the tags.
 */
final class TaggingOutput extends OutputStream {
  private static final int CHUNK = 1 << 20;
  private static final int MAGIC_LENGTH = 3;
  private static final int LARGEST_BLOCK = (1 << 23) - 1;

  private final Path path;
  private final OutputStream file;
  private final CompressionKind compression;
  private final KeyProvider keys;
  private final byte[] macKey = new byte[GranuleMac.KEY_LENGTH];
  private final GranuleMac mac;
  private final List<byte[]> held = new ArrayList<>();
  private final ByteArrayOutputStream tags = new ByteArrayOutputStream();
  private final List<Integer> first = new ArrayList<>(List.of(0));
  private long passed;
  private long end;
  private long lastStripeEnd = MAGIC_LENGTH;
  private boolean open = true;

  TaggingOutput(Path path, OutputStream file, CompressionKind compression, KeyProvider keys) {
    this.path = path;
    this.file = file;
    this.compression = compression;
    this.keys = keys;
    new SecureRandom().nextBytes(macKey);
    this.mac = new GranuleMac(macKey);
  }

  @Override
  public void write(int value) throws IOException {
    write(new byte[] {(byte) value}, 0, 1);
  }

  @Override
  public void write(byte[] bytes, int offset, int length) {
    int from = offset;
    for (int left = length; left > 0; ) {
      int used = (int) (end - passed) % CHUNK;
      if (used == 0) {
        held.add(new byte[CHUNK]);
      }
      int count = Math.min(left, CHUNK - used);
      System.arraycopy(bytes, from, held.get(held.size() - 1), used, count);
      from += count;
      left -= count;
      end += count;
    }
  }

  /** The held bytes of a range, piece by piece. */
  private List<ByteBuffer> pieces(long start, long stop) {
    List<ByteBuffer> pieces = new ArrayList<>();
    for (long at = start; at < stop; ) {
      int within = (int) ((at - passed) % CHUNK);
      int length = (int) Math.min(stop - at, CHUNK - within);
      pieces.add(ByteBuffer.wrap(held.get((int) ((at - passed) / CHUNK)), within, length));
      at += length;
    }
    return pieces;
  }

  private byte[] copy(long start, long stop) {
    ByteBuffer copy = ByteBuffer.allocate((int) (stop - start));
    pieces(start, stop).forEach(copy::put);
    return copy.array();
  }

  /** Tells whether a stripe waits to be passed on. */
  boolean waiting() {
    return end > lastStripeEnd;
  }

  /** Tags the stripes that are new, and passes on what is held, which ends with them. */
  void pass(List<StripeInformation> stripes) throws IOException {
    for (StripeInformation stripe : stripes.subList(first.size() - 1, stripes.size())) {
      tag(
          stripe.getOffset(),
          stripe.getIndexLength(),
          stripe.getDataLength(),
          stripe.getFooterLength());
    }
    if (lastStripeEnd != end) {
      throw new IOException(path + ": ORC's writer has written other stripes than it tells of");
    }
    pass(end);
    held.clear();
    passed = end;
  }

  private void pass(long stop) throws IOException {
    for (ByteBuffer piece : pieces(passed, stop)) {
      file.write(piece.array(), piece.position(), piece.remaining());
    }
  }

  private void tag(long offset, long indexLength, long dataLength, long footerLength)
      throws IOException {
    long footerStart = offset + indexLength + dataLength;
    lastStripeEnd = footerStart + footerLength;
    byte[] stored = copy(footerStart, lastStripeEnd);
    byte[] content =
        StoredTail.decoded(stored, 0, stored.length, compression, LARGEST_BLOCK, "stripe footer");
    StripeLayout layout =
        StripeLayout.of(
            offset,
            indexLength,
            dataLength,
            footerLength,
            OrcProto.StripeFooter.parseFrom(content));
    if (layout == null) {
      throw new IOException(
          path + ": the streams of stripe " + (first.size() - 1) + " do not fill it");
    }
    for (long at = offset; at < lastStripeEnd; ) {
      StripeLayout.Granule granule = layout.granule(at);
      tags.write(
          mac.tag(first.size() - 1, granule.stream(), granule.number(), pieces(at, granule.end())));
      at = granule.end();
    }
    first.add(first.get(first.size() - 1) + layout.granules());
  }

  @Override
  public void close() throws IOException {
    if (open) {
      open = false;
      try (file) {
        finish();
      }
    }
  }

  private void finish() throws IOException {
    byte[] last = copy(Math.max(passed, end - StoredTail.LONGEST_POSTSCRIPT), end);
    StoredTail tail =
        StoredTail.of(path, copy(end - StoredTail.length(path, last, end - passed), end), end);
    List<OrcProto.StripeInformation> stripes = tail.footer().getStripesList();
    for (OrcProto.StripeInformation stripe : stripes.subList(first.size() - 1, stripes.size())) {
      tag(
          stripe.getOffset(),
          stripe.getIndexLength(),
          stripe.getDataLength(),
          stripe.getFooterLength());
    }
    if (lastStripeEnd != tail.start()) {
      throw new IOException(
          path + ": ORC's writer has written other stripes than its footer tells of");
    }
    pass(tail.start());
    file.write(copy(tail.start(), tail.start() + tail.beforeFooter().remaining()));
    writeFooter(tail);
  }

  /**
   * Writes footer and postscript again; the footer's length does not depend on the tag within it.
   */
  private void writeFooter(StoredTail tail) throws IOException {
    IntegrityTags made =
        new IntegrityTags(
            wraps(tail.footer().getEncryption()),
            first.stream().mapToInt(Integer::intValue).toArray(),
            tags.toByteArray(),
            new byte[GranuleMac.TAG_LENGTH]);
    byte[] header = made.header();
    OrcProto.Footer.Builder footer = tail.footer().toBuilder();
    footer
        .getTypesBuilder(0)
        .addAttributes(
            OrcProto.StringPair.newBuilder()
                .setKey(IntegrityTags.ATTRIBUTE)
                .setValue(IntegrityTags.PRESENT));
    footer
        .addMetadata(item(IntegrityTags.HEADER_ITEM, header))
        .addMetadata(item(IntegrityTags.TAGS_ITEM, made.tags()));
    byte[] content = footer.build().toByteArray();
    int length = StoredTail.framed(content, compression, tail.blockSize()).length;
    byte[] postScript = tail.postScript().toBuilder().setFooterLength(length).build().toByteArray();
    byte[] behind = Arrays.copyOf(postScript, postScript.length + 1);
    behind[postScript.length] = (byte) postScript.length;
    byte[] tag =
        IntegrityTags.tailTag(mac, tail.beforeFooter(), content, header, ByteBuffer.wrap(behind));
    System.arraycopy(tag, 0, content, IntegrityTags.tailTagAt(content, header), tag.length);
    file.write(StoredTail.framed(content, compression, tail.blockSize()));
    file.write(behind);
  }

  private static OrcProto.UserMetadataItem item(String name, byte[] value) {
    return OrcProto.UserMetadataItem.newBuilder()
        .setName(name)
        .setValue(ByteString.copyFrom(value))
        .build();
  }

  private List<IntegrityTags.Wrap> wraps(OrcProto.Encryption encryption) throws IOException {
    List<IntegrityTags.Wrap> wraps = new ArrayList<>();
    for (int[] used : IntegrityTags.variants(encryption)) {
      Key local = KeyCheck.footerKey(encryption, used[1], keys);
      if (local == null) {
        throw new IOException(
            "KeyMissingError: key "
                + encryption.getKey(used[0]).getKeyName()
                + " went while "
                + path
                + " was being written; run the write again");
      }
      byte[] wrapped =
          MacKeys.wrap(macKey, local.getEncoded(), encryption.getKey(used[0]).getKeyName());
      wraps.add(new IntegrityTags.Wrap(used[0], used[1], wrapped));
    }
    return wraps;
  }

  /** Closes the file as it is, for it will be deleted. */
  void abandon() throws IOException {
    if (open) {
      open = false;
      held.clear();
      file.close();
    }
  }
}
