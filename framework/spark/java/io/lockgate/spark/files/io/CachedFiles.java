package io.lockgate.spark.files.io;

import java.io.EOFException;
import java.io.IOException;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSInputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.FilterFileSystem;
import org.apache.hadoop.fs.Path;

/**
 * The file system that one remote file is read through, whose ranges are kept on a local disk: the
 * folder {@code fs.lockgate.cache.folder} of Hadoop's configuration. The twin of {@code
 * framework/io/cache/cached_files.py}.
 */
public final class CachedFiles extends FilterFileSystem {
  private static final String FOLDER = "fs.lockgate.cache.folder";
  private static final String SIZE = "fs.lockgate.cache.size";
  private static final String DEFAULT_SIZE = "10 gb";
  private static final String UNITS = "kmgt";
  private static final Pattern BYTES = Pattern.compile("(\\d+)\\s*([kmgt]?)b?");
  private static final Pattern NEVER_CHANGES =
      Pattern.compile(
          "(?:data|changelog|manifest|manifest-list|index|index-manifest)"
              + "-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}-\\d+(?:\\..+)?");

  /** Files that are near already. */
  private static final Set<String> NEAR = Set.of("file", "hdfs");

  private static final Map<String, RangeCache> CACHES = new ConcurrentHashMap<>();

  private final RangeCache cache;
  private final long size;

  private CachedFiles(FileSystem files, RangeCache cache, long size) {
    super(files);
    this.cache = cache;
    this.size = size;
  }

  /** The file system of a file of {@code size} bytes, by the cache if the configuration has one. */
  public static FileSystem over(FileSystem files, Configuration conf, Path path, long size)
      throws IOException {
    String folder = conf.getTrimmed(FOLDER, "");
    String scheme = path.toUri().getScheme();
    boolean suits =
        scheme != null && !NEAR.contains(scheme) && size > 0 && neverChanges(path.getName());
    return folder.isEmpty() || !suits
        ? files
        : new CachedFiles(files, cache(folder, conf.getTrimmed(SIZE, DEFAULT_SIZE)), size);
  }

  /** Tells whether a name of a file means the same bytes for ever. */
  public static boolean neverChanges(String name) {
    return NEVER_CHANGES.matcher(name).matches();
  }

  private static RangeCache cache(String folder, String size) throws IOException {
    String name = folder + "\0" + size;
    RangeCache found = CACHES.get(name);
    if (found == null) {
      found = new RangeCache(java.nio.file.Path.of(folder), bytes(size));
      CACHES.put(name, found);
    }
    return found;
  }

  private static long bytes(String text) {
    Matcher found = BYTES.matcher(text.toLowerCase(Locale.ROOT));
    long bytes =
        found.matches()
            ? Long.parseLong(found.group(1))
                << (found.group(2).isEmpty() ? 0 : 10 * (UNITS.indexOf(found.group(2)) + 1))
            : 0;
    if (bytes <= 0) {
      throw new IllegalArgumentException(
          SIZE + " is '" + text + "': give a size such as " + DEFAULT_SIZE);
    }
    return bytes;
  }

  @Override
  public FSDataInputStream open(Path path, int bufferSize) throws IOException {
    return new FSDataInputStream(new Input(path, bufferSize));
  }

  /** The file by its blocks; it is opened in the store when one is missing. */
  private final class Input extends FSInputStream {
    private final Path path;
    private final int bufferSize;
    private FSDataInputStream remote;
    private long position;
    private long lastNumber = -1;
    private byte[] last;

    Input(Path path, int bufferSize) {
      this.path = path;
      this.bufferSize = bufferSize;
    }

    @Override
    public synchronized void readFully(long from, byte[] buffer, int offset, int length)
        throws IOException {
      validatePositionedReadArgs(from, buffer, offset, length);
      if (from > size - length) {
        throw new EOFException("no " + length + " bytes at " + from + " of " + size);
      }
      long end = from + length;
      for (long at = from; at < end; ) {
        long number = at / RangeCache.BLOCK;
        byte[] block = block(number, (end - 1) / RangeCache.BLOCK);
        int start = (int) (at - number * RangeCache.BLOCK);
        int count = (int) Math.min(block.length - start, end - at);
        System.arraycopy(block, start, buffer, offset + (int) (at - from), count);
        at += count;
      }
    }

    /** A block; if it is missing, those behind it up to {@code furthest} are fetched with it. */
    private byte[] block(long number, long furthest) throws IOException {
      if (number == lastNumber) {
        return last;
      }
      byte[] found = cache.load(file(number), length(number));
      last = found == null ? fetch(number, furthest) : found;
      lastNumber = number;
      return last;
    }

    private byte[] fetch(long number, long furthest) throws IOException {
      long behind = number + 1;
      while (behind <= furthest && !java.nio.file.Files.exists(file(behind))) {
        behind++;
      }
      if (remote == null) {
        remote = fs.open(path, bufferSize);
      }
      long start = number * RangeCache.BLOCK;
      byte[] data = new byte[Math.toIntExact(Math.min(behind * RangeCache.BLOCK, size) - start)];
      remote.readFully(start, data);
      byte[] first = null;
      for (long each = number; each < behind; each++) {
        int from = (int) ((each - number) * RangeCache.BLOCK);
        byte[] block = java.util.Arrays.copyOfRange(data, from, from + length(each));
        cache.store(file(each), block);
        first = first == null ? block : first;
      }
      return first;
    }

    private java.nio.file.Path file(long number) {
      return cache.path(path.toString(), size, number);
    }

    private int length(long number) {
      return (int) Math.min(RangeCache.BLOCK, size - number * RangeCache.BLOCK);
    }

    @Override
    public int read(long from, byte[] buffer, int offset, int length) throws IOException {
      if (length == 0 || from >= size) {
        return length == 0 ? 0 : -1;
      }
      int count = (int) Math.min(length, size - from);
      readFully(from, buffer, offset, count);
      return count;
    }

    @Override
    public int read(byte[] buffer, int offset, int length) throws IOException {
      int count = read(position, buffer, offset, length);
      position += Math.max(0, count);
      return count;
    }

    @Override
    public int read() throws IOException {
      byte[] one = new byte[1];
      return read(one, 0, 1) < 0 ? -1 : one[0] & 0xff;
    }

    @Override
    public void seek(long to) {
      position = to;
    }

    @Override
    public long getPos() {
      return position;
    }

    @Override
    public boolean seekToNewSource(long target) {
      return false;
    }

    @Override
    public synchronized void close() throws IOException {
      if (remote != null) {
        remote.close();
      }
    }
  }
}
