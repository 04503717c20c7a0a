package io.lockgate.spark.files.io;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.FileTime;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HexFormat;
import java.util.List;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicLong;
import java.util.zip.CRC32;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Blocks of remote files on a local disk, shared by the processes of one user. The twin of {@code
 * framework/io/cache/range_cache.py}, which says why; both pass {@code
 * tests/fixtures/range_cache.json}.
 */
public final class RangeCache {
  /** Bytes of a block; the last one of a file may have fewer. */
  public static final int BLOCK = 1 << 20;

  private static final Logger LOG = LoggerFactory.getLogger(RangeCache.class);
  private static final int SUM_BYTES = 4;
  private static final String UNFINISHED = "tmp-";
  private static final long UNFINISHED_MILLIS = 3_600_000;
  private static final long USED_MILLIS = 60_000;
  // Each process looks at the whole folder when it has written this share of the limit.
  private static final int SHARE_OF_LIMIT = 16;
  private static final FileAttribute<?> FOLDER =
      PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------"));
  private static final FileAttribute<?> FILE =
      PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------"));

  private final Path folder;
  private final long limit;
  private final AtomicLong written = new AtomicLong();
  private volatile boolean isFull;

  /** Makes the folder, or checks it; an IOException says that it could be another user's. */
  public RangeCache(Path folder, long limit) throws IOException {
    this.folder = PrivateFolders.make(folder);
    this.limit = limit;
  }

  /** The file of a block of a remote file of {@code size} bytes. */
  public Path path(String address, long size, long block) {
    String text = address + "\0" + size + "\0" + block;
    try {
      byte[] hash =
          MessageDigest.getInstance("SHA-256").digest(text.getBytes(StandardCharsets.UTF_8));
      String name = HexFormat.of().formatHex(hash, 0, 16);
      return folder.resolve(name.substring(0, 2)).resolve(name);
    } catch (NoSuchAlgorithmException impossible) {
      throw new IllegalStateException(impossible);
    }
  }

  /** A block of {@code length} bytes, null if it is not here. */
  byte[] load(Path path, int length) {
    byte[] data;
    try {
      data = Files.readAllBytes(path);
      touch(path);
    } catch (IOException missing) {
      return null;
    }
    int end = data.length - SUM_BYTES;
    if (end == length && sum(data, end) == ByteBuffer.wrap(data, end, SUM_BYTES).getInt()) {
      return Arrays.copyOf(data, end);
    }
    LOG.warn("the block {} of the cache of ranges is damaged: it is read again", path);
    delete(path);
    return null;
  }

  private static void touch(Path path) throws IOException {
    long now = System.currentTimeMillis();
    if (now - Files.getLastModifiedTime(path).toMillis() > USED_MILLIS) {
      Files.setLastModifiedTime(path, FileTime.fromMillis(now));
    }
  }

  private static int sum(byte[] data, int length) {
    CRC32 sum = new CRC32();
    sum.update(data, 0, length);
    return (int) sum.getValue();
  }

  /** Keeps a block. A disk that is full costs only the cache. */
  void store(Path path, byte[] content) {
    Path unfinished = path.resolveSibling(UNFINISHED + UUID.randomUUID());
    ByteBuffer whole = ByteBuffer.allocate(content.length + SUM_BYTES);
    whole.put(content).putInt(sum(content, content.length)).flip();
    try {
      makeFolder(path.getParent());
      try (FileChannel file =
          FileChannel.open(
              unfinished, Set.of(StandardOpenOption.WRITE, StandardOpenOption.CREATE_NEW), FILE)) {
        while (whole.hasRemaining()) {
          file.write(whole);
        }
      }
      Files.move(unfinished, path, StandardCopyOption.ATOMIC_MOVE);
      isFull = false;
      if (written.addAndGet(whole.limit()) * SHARE_OF_LIMIT > limit) {
        written.set(0);
        shrink();
      }
    } catch (IOException failure) {
      delete(unfinished);
      if (!isFull) {
        LOG.warn("the cache of ranges {} takes no more blocks: {}", folder, failure.toString());
        isFull = true;
      }
    }
  }

  private static void makeFolder(Path folder) throws IOException {
    try {
      Files.createDirectory(folder, FOLDER);
    } catch (FileAlreadyExistsException already) {
      return;
    }
  }

  /** Deletes the blocks that were read longest ago, unless another process does so now. */
  public void shrink() throws IOException {
    Set<LinkOption> links = Set.of(LinkOption.NOFOLLOW_LINKS);
    Set<java.nio.file.OpenOption> options = new java.util.HashSet<>(links);
    options.add(StandardOpenOption.WRITE);
    options.add(StandardOpenOption.CREATE);
    try (FileChannel file = FileChannel.open(folder.resolve("lock"), options, FILE);
        FileLock lock = file.tryLock()) {
      if (lock != null) {
        shrinkAlone();
      }
    } catch (OverlappingFileLockException busy) {
      return;
    }
  }

  private record Block(Path path, long size, long used) {}

  private void shrinkAlone() throws IOException {
    List<Block> blocks = new ArrayList<>();
    long bytes = 0;
    try (DirectoryStream<Path> folders = Files.newDirectoryStream(folder, "??")) {
      for (Path each : folders) {
        bytes += collect(each, blocks);
      }
    }
    blocks.sort(Comparator.comparingLong(Block::used));
    for (Block block : blocks) {
      if (bytes <= limit) {
        return;
      }
      delete(block.path());
      bytes -= block.size();
    }
  }

  private static long collect(Path folder, List<Block> blocks) throws IOException {
    long bytes = 0;
    try (DirectoryStream<Path> files = Files.newDirectoryStream(folder)) {
      for (Path file : files) {
        BasicFileAttributes found;
        try {
          found = Files.readAttributes(file, BasicFileAttributes.class, LinkOption.NOFOLLOW_LINKS);
        } catch (IOException gone) {
          continue;
        }
        long used = found.lastModifiedTime().toMillis();
        boolean isOld = System.currentTimeMillis() - used > UNFINISHED_MILLIS;
        if (file.getFileName().toString().startsWith(UNFINISHED) && isOld) {
          delete(file); // of a process that was killed
        } else {
          blocks.add(new Block(file, found.size(), used));
          bytes += found.size();
        }
      }
    }
    return bytes;
  }

  private static void delete(Path path) {
    try {
      Files.deleteIfExists(path);
    } catch (IOException failure) {
      LOG.debug("{} was not deleted", path, failure);
    }
  }
}
