package io.lockgate.spark.files;

import java.io.EOFException;
import java.io.IOException;
import java.io.Serializable;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.Map;
import java.util.TreeMap;
import java.util.zip.CRC32;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.Path;
import org.roaringbitmap.PeekableIntIterator;
import org.roaringbitmap.RoaringBitmap;

/**
 * The positions of deleted rows in a data file: a deletion vector, in either of its two layouts.
 *
 * <p>The twin of Python's {@code DeletedRows}; both run the vectors of {@code
 * tests/fixtures/vectors}.
 */
public final class DeletedRows {
  private static final int MAGIC_32 = 1581511376;
  private static final int MAGIC_64 = 1681511377;
  private static final int FRAME_BYTES = 8;
  private static final int MAGIC_BYTES = 4;

  /**
   * Location of a vector in an index file; {@code length} is the manifest's, {@code rows} are those
   * of the data file. If it {@code shows}, only rows are read that it deletes and {@code butNot}
   * does not.
   */
  public record Location(
      String path,
      long offset,
      long length,
      long cardinality,
      long rows,
      boolean shows,
      Location butNot)
      implements Serializable {}

  private final Map<Integer, RoaringBitmap> parts;

  private DeletedRows(Map<Integer, RoaringBitmap> parts) {
    this.parts = parts;
  }

  /** Reads the rows that are not read; an IOException says what is damaged. */
  public static DeletedRows read(Configuration conf, Location location) throws IOException {
    DeletedRows found = deleted(conf, location);
    if (!location.shows()) {
      return found;
    }
    if (location.butNot() != null) {
      DeletedRows others = deleted(conf, location.butNot());
      found.parts.forEach(
          (key, part) -> part.andNot(others.parts.getOrDefault(key, new RoaringBitmap())));
    }
    return found.others(location.rows());
  }

  /** The rows of a file of so many rows that are not among these. */
  private DeletedRows others(long rows) {
    Map<Integer, RoaringBitmap> others = new TreeMap<>();
    for (int key = 0; (long) key << Integer.SIZE < rows; key++) {
      long left = Math.min(1L << Integer.SIZE, rows - ((long) key << Integer.SIZE));
      others.put(key, RoaringBitmap.flip(parts.getOrDefault(key, new RoaringBitmap()), 0L, left));
    }
    return new DeletedRows(others);
  }

  private static DeletedRows deleted(Configuration conf, Location location) throws IOException {
    Path path = new Path(location.path());
    String name = "the deletion vector at byte " + location.offset() + " of " + path;
    byte[] data;
    try (FSDataInputStream file = path.getFileSystem(conf).open(path)) {
      file.seek(location.offset());
      data = file.readNBytes(Math.toIntExact(location.length() + FRAME_BYTES));
    } catch (EOFException end) {
      throw new IOException(name + " is truncated: " + end.getMessage(), end);
    }
    byte[] whole =
        isWide(data) ? Arrays.copyOf(data, Math.min(data.length, (int) location.length())) : data;
    DeletedRows deleted = decode(whole, location.rows(), name);
    if (deleted.cardinality() != location.cardinality()) {
      throw new IOException(
          name
              + " is damaged: it deletes "
              + deleted.cardinality()
              + " rows, its manifest says "
              + location.cardinality());
    }
    return deleted;
  }

  private static boolean isWide(byte[] data) {
    return data.length >= FRAME_BYTES
        && ByteBuffer.wrap(data).order(ByteOrder.LITTLE_ENDIAN).getInt(MAGIC_BYTES) == MAGIC_64;
  }

  /** Decodes the bytes of a vector of a file with so many rows. */
  static DeletedRows decode(byte[] data, long rows, String name) throws IOException {
    ByteBuffer body = checked(data, name);
    int magic = body.getInt();
    body.order(ByteOrder.LITTLE_ENDIAN);
    DeletedRows found;
    try {
      found = new DeletedRows(magic == MAGIC_32 ? narrow(body) : wide(magic, body));
    } catch (IOException | RuntimeException damage) {
      throw new IOException(name + " is damaged: " + damage.getMessage(), damage);
    }
    if (found.cardinality() > rows || found.last() >= rows) {
      throw new IOException(
          name + " is damaged: it deletes rows that a file of " + rows + " rows lacks");
    }
    return found;
  }

  private static ByteBuffer checked(byte[] data, String name) throws IOException {
    if (data.length < FRAME_BYTES + MAGIC_BYTES) {
      throw new IOException(
          name + " is truncated: a deletion vector has more than " + data.length + " bytes");
    }
    int size = ByteBuffer.wrap(data).getInt();
    if (size != data.length - FRAME_BYTES) {
      throw new IOException(
          name
              + " is damaged: its header names "
              + size
              + " bytes, but it has "
              + (data.length - FRAME_BYTES));
    }
    CRC32 sum = new CRC32();
    sum.update(data, MAGIC_BYTES, size);
    if ((int) sum.getValue() != ByteBuffer.wrap(data).getInt(MAGIC_BYTES + size)) {
      throw new IOException(name + " is damaged: its check sum is wrong");
    }
    return ByteBuffer.wrap(data, MAGIC_BYTES, size);
  }

  private static Map<Integer, RoaringBitmap> narrow(ByteBuffer body) throws IOException {
    return new TreeMap<>(Map.of(0, bitmap(body)));
  }

  private static Map<Integer, RoaringBitmap> wide(int magic, ByteBuffer body) throws IOException {
    if (Integer.reverseBytes(magic) != MAGIC_64) {
      throw new IOException("no deletion vector begins with " + Integer.toHexString(magic));
    }
    long count = body.getLong();
    Map<Integer, RoaringBitmap> parts = new TreeMap<>();
    for (long i = 0; i < count; i++) {
      int key = body.getInt();
      if (key < 0 || parts.put(key, bitmap(body)) != null) {
        throw new IllegalArgumentException("a part of it has the key " + key);
      }
    }
    return parts;
  }

  private static RoaringBitmap bitmap(ByteBuffer body) throws IOException {
    RoaringBitmap bitmap = new RoaringBitmap();
    bitmap.deserialize(body.duplicate().order(ByteOrder.LITTLE_ENDIAN));
    body.position(body.position() + bitmap.serializedSizeInBytes());
    return bitmap;
  }

  /** Returns how many rows are deleted. */
  public long cardinality() {
    return parts.values().stream().mapToLong(RoaringBitmap::getLongCardinality).sum();
  }

  private long last() {
    long last = -1;
    for (Map.Entry<Integer, RoaringBitmap> part : parts.entrySet()) {
      if (!part.getValue().isEmpty()) {
        last =
            ((long) part.getKey() << Integer.SIZE) + Integer.toUnsignedLong(part.getValue().last());
      }
    }
    return last;
  }

  /** Tells whether a row is deleted. */
  public boolean contains(long row) {
    RoaringBitmap part = parts.get((int) (row >>> Integer.SIZE));
    return part != null && part.contains((int) row);
  }

  /**
   * Writes into {@code left} which of {@code count} rows from {@code first} on, counted from it,
   * are left; returns how many.
   */
  public int keep(long first, int count, int[] left) {
    long low = first & 0xFFFFFFFFL;
    RoaringBitmap part = parts.get((int) (first >>> Integer.SIZE));
    if (low + count > 1L << Integer.SIZE) {
      return keepOneByOne(first, count, left);
    }
    PeekableIntIterator gone = part == null ? null : part.getIntIterator();
    if (gone != null) {
      gone.advanceIfNeeded((int) low);
    }
    long next = next(gone, low);
    int kept = 0;
    for (int row = 0; row < count; row++) {
      if (row == next) {
        next = next(gone, low);
      } else {
        left[kept++] = row;
      }
    }
    return kept;
  }

  /** The next deleted row, counted from {@code low}. */
  private static long next(PeekableIntIterator gone, long low) {
    return gone != null && gone.hasNext()
        ? Integer.toUnsignedLong(gone.next()) - low
        : Long.MAX_VALUE;
  }

  private int keepOneByOne(long first, int count, int[] left) {
    int kept = 0;
    for (int row = 0; row < count; row++) {
      if (!contains(first + row)) {
        left[kept++] = row;
      }
    }
    return kept;
  }
}
