package io.lockgate.spark.integrity;

import io.lockgate.spark.keys.GranuleMac;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.function.IntFunction;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileRange;
import org.apache.orc.OrcFile;
import org.apache.orc.OrcProto;

/**
 * A file whose tail has been checked, and that hands out only bytes that match their integrity
 * tags; for one thread.
 *
 * <p>Each range asked for is extended to whole granules, which are read once for all ranges of a
 * call, checked, and handed out as views.
 */
final class VerifiedFile {
  private static final int LAYOUTS = 4;
  private static final int LONGEST_READ = Integer.MAX_VALUE - 64;
  private static final byte[] MAGIC =
      OrcFile.MAGIC.getBytes(java.nio.charset.StandardCharsets.US_ASCII);

  private final StoredTail tail;
  private final IntegrityTags tags;
  private final GranuleMac mac;
  private final List<OrcProto.StripeInformation> stripes;
  private final Map<Integer, Stripe> layouts =
      new LinkedHashMap<>(8, 0.75f, true) {
        @Override
        protected boolean removeEldestEntry(Map.Entry<Integer, Stripe> eldest) {
          return size() > LAYOUTS;
        }
      };
  private boolean magicChecked;

  /** A stripe that was read from: where its granules lie, and its checked footer. */
  private record Stripe(int number, StripeLayout layout, long footerStart, byte[] footer) {}

  /** Whole granules of one stripe that are read at once. */
  private static final class Run {
    private final Stripe stripe;
    private final long start;
    private long end;
    private FileRange range;
    private ByteBuffer bytes;

    Run(Stripe stripe, long start, long end) {
      this.stripe = stripe;
      this.start = start;
      this.end = end;
    }

    ByteBuffer view(long from, int length) {
      return bytes.slice(bytes.position() + (int) (from - start), length);
    }
  }

  VerifiedFile(StoredTail tail, IntegrityTags tags, GranuleMac mac) {
    this.tail = tail;
    this.tags = tags;
    this.mac = mac;
    this.stripes = tail.footer().getStripesList();
  }

  /**
   * Reads checked bytes. What lies before the tail in a read that reaches into it is given as
   * zeros: nobody looks at it.
   */
  void readFully(FSDataInputStream file, long position, byte[] target, int offset, int length)
      throws IOException {
    long end = position + length;
    if (end > tail.start()) {
      int before = (int) Math.max(0, tail.start() - position);
      Arrays.fill(target, offset, offset + before, (byte) 0);
      tail.copy(position + before, target, offset + before, length - before);
    } else if (end <= MAGIC.length) {
      checkMagic(bytes(file, 0, MAGIC.length));
      System.arraycopy(MAGIC, (int) position, target, offset, length);
    } else if (length > 0) {
      Stripe stripe = stripe(file, position, end);
      if (position >= stripe.footerStart) {
        System.arraycopy(
            stripe.footer, (int) (position - stripe.footerStart), target, offset, length);
      } else {
        FileRange range = FileRange.createFileRange(position, length);
        readVectored(file, List.of(range), ByteBuffer::allocate);
        result(range).get(target, offset, length);
      }
    }
  }

  /**
   * Returns how many bytes a sequential read may take at a position: up to the end of its stripe,
   * or of the file.
   */
  int readable(long position, int length) {
    long limit = position < MAGIC.length ? MAGIC.length : tail.size();
    int number = number(position);
    if (position >= MAGIC.length && position < tail.start() && number >= 0) {
      OrcProto.StripeInformation stripe = stripes.get(number);
      limit = stripe.getOffset() + stripe.getIndexLength() + stripe.getDataLength();
      limit = position < limit ? limit : limit + stripe.getFooterLength();
    }
    return (int) Math.min(length, limit - position);
  }

  /** Reads checked bytes for each range. */
  void readVectored(
      FSDataInputStream file, List<? extends FileRange> ranges, IntFunction<ByteBuffer> allocate)
      throws IOException {
    List<FileRange> sorted = new ArrayList<>(ranges);
    sorted.sort(Comparator.comparingLong(FileRange::getOffset));
    List<Run> runs = new ArrayList<>();
    Map<FileRange, Run> runOf = new java.util.IdentityHashMap<>();
    for (FileRange range : sorted) {
      if (range.getLength() > 0) {
        runOf.put(range, run(file, range, runs));
      }
    }
    read(file, runs, allocate);
    for (Run run : runs) {
      check(run);
    }
    for (FileRange range : ranges) {
      Run run = runOf.get(range);
      ByteBuffer bytes =
          run == null ? ByteBuffer.allocate(0) : run.view(range.getOffset(), range.getLength());
      range.setData(CompletableFuture.completedFuture(bytes));
    }
  }

  /** The run that a range belongs to: the last one, where they share granules, or a new one. */
  private Run run(FSDataInputStream file, FileRange range, List<Run> runs) throws IOException {
    long last = range.getOffset() + range.getLength();
    Stripe stripe = stripe(file, range.getOffset(), last);
    long start = stripe.layout.granuleStart(range.getOffset());
    long end = stripe.layout.granuleEnd(last - 1);
    Run run = runs.isEmpty() ? null : runs.get(runs.size() - 1);
    if (run == null || start >= run.end || Math.max(end, run.end) - run.start > LONGEST_READ) {
      if (end - start > LONGEST_READ) {
        throw new IOException(
            tail.path()
                + ": a range of "
                + (end - start)
                + " bytes is too long to be checked at once");
      }
      run = new Run(stripe, start, end);
      runs.add(run);
    }
    run.end = Math.max(run.end, end);
    return run;
  }

  private void read(FSDataInputStream file, List<Run> runs, IntFunction<ByteBuffer> allocate)
      throws IOException {
    List<FileRange> wanted = new ArrayList<>();
    for (Run run : runs) {
      int length = (int) (run.end - run.start);
      if (run.start >= tail.held()) {
        run.bytes = ByteBuffer.wrap(bytes(file, run.start, length));
      } else {
        run.range = FileRange.createFileRange(run.start, length);
        wanted.add(run.range);
      }
    }
    FileRange magic = null;
    if (!magicChecked && !runs.isEmpty() && runs.get(0).stripe.number == 0) {
      magic = FileRange.createFileRange(0, MAGIC.length);
      if (tail.held() == 0 || wanted.isEmpty()) {
        checkMagic(bytes(file, 0, MAGIC.length));
      } else {
        wanted.add(0, magic);
      }
    }
    if (wanted.isEmpty()) {
      return;
    }
    // Room for a tag behind each range lets it be checked without a copy.
    file.readVectored(
        wanted, length -> allocate.apply(length + GranuleMac.TAG_LENGTH).slice(0, length));
    if (magic != null && magic == wanted.get(0)) {
      byte[] found = new byte[MAGIC.length];
      result(magic).get(found);
      checkMagic(found);
    }
    // All must have arrived before one is checked: they may share an array.
    for (Run run : runs) {
      run.bytes = run.range == null ? run.bytes : result(run.range);
    }
  }

  private ByteBuffer result(FileRange range) throws IOException {
    try {
      return range.getData().get();
    } catch (ExecutionException failure) {
      Throwable cause = failure.getCause();
      if (cause instanceof java.io.EOFException) {
        throw new IntegrityException(
            tail.path(),
            "it ends within the bytes from "
                + range.getOffset()
                + " to "
                + (range.getOffset() + range.getLength()),
            cause);
      }
      throw cause instanceof IOException expected ? expected : new IOException(cause);
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
      throw new java.io.InterruptedIOException("interrupted while reading " + tail.path());
    }
  }

  private byte[] bytes(FSDataInputStream file, long position, int length) throws IOException {
    byte[] bytes = new byte[length + GranuleMac.TAG_LENGTH];
    if (position >= tail.held()) {
      tail.copy(position, bytes, 0, length);
    } else {
      try {
        file.readFully(position, bytes, 0, length);
      } catch (java.io.EOFException cut) {
        throw new IntegrityException(
            tail.path(),
            "it ends within the bytes from " + position + " to " + (position + length),
            cut);
      }
    }
    return bytes;
  }

  private void checkMagic(byte[] found) throws IOException {
    if (!Arrays.equals(found, 0, MAGIC.length, MAGIC, 0, MAGIC.length)) {
      throw new IntegrityException(tail.path(), "its first bytes were changed");
    }
    magicChecked = true;
  }

  private void check(Run run) throws IOException {
    ByteBuffer bytes = run.bytes;
    int length = (int) (run.end - run.start);
    byte[] array;
    int offset;
    if (bytes.hasArray()) {
      array = bytes.array();
      offset = bytes.arrayOffset() + bytes.position();
    } else {
      array = new byte[length + GranuleMac.TAG_LENGTH];
      offset = 0;
      bytes.duplicate().get(array, 0, length);
    }
    check(run.stripe.number, run.stripe.layout, array, offset, run.start, run.end);
  }

  /**
   * Checks the granules from {@code start} to {@code end}, which lie in an array from {@code
   * offset} on.
   */
  private void check(
      int stripe, StripeLayout layout, byte[] array, int offset, long start, long end)
      throws IOException {
    for (long at = start; at < end; ) {
      StripeLayout.Granule granule = layout.granule(at);
      int from = offset + (int) (at - start);
      check(stripe, granule, array, from);
      at = granule.end();
    }
  }

  private void check(int stripe, StripeLayout.Granule granule, byte[] array, int offset)
      throws IOException {
    int length = (int) (granule.end() - granule.start());
    int tag = (tags.first()[stripe] + granule.tag()) * GranuleMac.TAG_LENGTH;
    if (!mac.matches(
        stripe, granule.stream(), granule.number(), array, offset, length, tags.tags(), tag)) {
      String what =
          granule.stream() == GranuleMac.STRIPE_FOOTER
              ? "the footer"
              : "stream " + granule.stream();
      throw new IntegrityException(
          tail.path(),
          "the bytes from "
              + granule.start()
              + " to "
              + granule.end()
              + " ("
              + what
              + " of stripe "
              + stripe
              + ") do not match their integrity tag: they were damaged or changed after they were"
              + " written");
    }
  }

  /**
   * The number of the last stripe that begins at a position or before it; -1 where there is none.
   */
  private int number(long position) {
    int low = 0;
    int high = stripes.size();
    while (low < high) {
      int middle = (low + high) >>> 1;
      if (stripes.get(middle).getOffset() <= position) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low - 1;
  }

  private Stripe stripe(FSDataInputStream file, long position, long end) throws IOException {
    int number = number(position);
    if (number >= 0) {
      OrcProto.StripeInformation stripe = stripes.get(number);
      if (end
          <= stripe.getOffset()
              + stripe.getIndexLength()
              + stripe.getDataLength()
              + stripe.getFooterLength()) {
        Stripe layout = layouts.get(number);
        if (layout == null) {
          layout = open(file, number, stripe);
          layouts.put(number, layout);
        }
        return layout;
      }
    }
    throw new IOException(
        tail.path() + ": the bytes from " + position + " to " + end + " are not of one stripe");
  }

  /**
   * Reads a stripe's footer and checks it before it is believed: its tags are the stripe's last
   * ones.
   */
  private Stripe open(FSDataInputStream file, int number, OrcProto.StripeInformation stripe)
      throws IOException {
    long start = stripe.getOffset() + stripe.getIndexLength() + stripe.getDataLength();
    int length = Math.toIntExact(stripe.getFooterLength());
    byte[] stored = bytes(file, start, length);
    int count = tags.first()[number + 1] - tags.first()[number];
    int own = StripeLayout.granules(length);
    if (own > count) {
      throw new IntegrityException(tail.path(), "stripe " + number + " has too few integrity tags");
    }
    for (int granule = 0; granule < own; granule++) {
      long from = start + (long) granule * GranuleMac.GRANULE;
      long to = Math.min(from + GranuleMac.GRANULE, start + length);
      check(
          number,
          new StripeLayout.Granule(
              GranuleMac.STRIPE_FOOTER, granule, count - own + granule, from, to),
          stored,
          (int) (from - start));
    }
    byte[] content =
        StoredTail.decoded(
            stored, 0, length, tail.compression(), tail.blockSize(), "stripe footer");
    StripeLayout layout =
        StripeLayout.of(
            stripe.getOffset(),
            stripe.getIndexLength(),
            stripe.getDataLength(),
            length,
            OrcProto.StripeFooter.parseFrom(content));
    if (layout == null || layout.granules() != count) {
      throw new IntegrityException(
          tail.path(), "the streams of stripe " + number + " do not fill it");
    }
    return new Stripe(number, layout, start, stored);
  }
}
