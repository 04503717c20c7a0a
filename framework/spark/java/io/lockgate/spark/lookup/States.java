package io.lockgate.spark.lookup;

import com.fasterxml.jackson.databind.JsonNode;
import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.bridge.Failure;
import io.lockgate.spark.files.io.PrivateFolders;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.FileTime;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.time.Instant;
import java.util.Comparator;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.apache.spark.TaskContext;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The states that this JVM has open, each once for all of its tasks.
 *
 * <p>A state that nobody uses is closed once the owner has removed it, so that the disk has its
 * space back, or when many are open.
 */
final class States {
  /** A query needs one state for each of its lookups, and one more while they change. */
  private static final int MOST_OPEN = 16;

  private static final long POLL_MILLIS = 50;

  /** An executor starts its process within a second or two; one on a busy host takes longer. */
  private static final double OWNER_SECONDS = 60;

  private static final Map<Path, Lease> OPEN = new LinkedHashMap<>(16, 0.75f, true);

  /**
   * Several tasks may meet a damaged cache, and each may remove it while another opens the next.
   */
  private static final int TRIES = 5;

  private static final Logger LOG = LoggerFactory.getLogger(States.class);

  private States() {}

  /**
   * A state open for a number of users; its mark tells its snapshot from others of the same number,
   * its stamp its files.
   */
  static final class Lease {
    final CacheState state;
    private final Object stamp;
    private final long mark;
    private int users;
    private boolean left;

    private Lease(CacheState state, Object stamp, long mark) {
      this.state = state;
      this.stamp = stamp;
      this.mark = mark;
    }
  }

  /**
   * Takes the state at a snapshot, waiting until it is built; must be given back with {@link
   * #release}.
   */
  static Lease acquire(Path cache, long snapshot, long mark, double waitSeconds) {
    Path folder = cache.resolve("generations").resolve(Long.toString(snapshot));
    Lease lease = leased(folder, mark);
    if (lease != null) {
      return lease;
    }
    for (int triesLeft = TRIES - 1; ; triesLeft--) {
      Object before = keyOf(cache);
      try {
        return whenBuilt(cache, folder, snapshot, mark, waitSeconds);
      } catch (IOException e) {
        boolean isGone = e instanceof NoSuchFileException || e instanceof FileNotFoundException;
        boolean isOther = !Objects.equals(keyOf(cache), before);
        if (isGone && (triesLeft == 0 || !isOther)) {
          throw gone(cache, snapshot, e);
        } else if (triesLeft == 0) {
          throw Failure.inTask(
              "LookupCacheError: cannot open the lookup cache "
                  + folder
                  + ": "
                  + firstLine(e)
                  + "; lockgate lookup rebuild "
                  + cache
                  + " builds it again",
              e);
        } else if (!isOther) {
          discard(cache, e);
        }
      }
    }
  }

  /** What tells a folder from one that is made later in its place; null if there is none. */
  private static Object keyOf(Path folder) {
    try {
      return Files.readAttributes(folder, BasicFileAttributes.class).fileKey();
    } catch (IOException none) {
      return null;
    }
  }

  private static Lease whenBuilt(
      Path cache, Path folder, long snapshot, long mark, double waitSeconds) throws IOException {
    await(cache, folder, snapshot, mark, waitSeconds);
    try {
      PrivateFolders.check(cache);
      PrivateFolders.checkOwn(folder);
      CacheVersions.check(cache);
      return opened(folder, mark);
    } catch (PrivateFolders.UnsafePathException e) {
      throw unsafe(e);
    }
  }

  private static RuntimeException gone(Path cache, long snapshot, IOException e) {
    return Failure.inTask(
        "LookupCacheError: the lookup cache "
            + cache
            + " does not hold snapshot "
            + snapshot
            + " any more: run the query again",
        e);
  }

  /** Removes a damaged cache in one step; its owner, which sees that, builds it again. */
  private static void discard(Path cache, IOException damage) {
    LOG.warn("the lookup cache {} is removed and built again: {}", cache, firstLine(damage));
    Path aside = cache.resolveSibling("." + cache.getFileName() + "." + UUID.randomUUID());
    try {
      Files.move(cache, aside);
      try (Stream<Path> inside = Files.walk(aside)) {
        for (Path each : inside.sorted(Comparator.reverseOrder()).toList()) {
          Files.deleteIfExists(each);
        }
      }
    } catch (IOException | UncheckedIOException e) {
      // Another task has removed it.
    }
  }

  private static String firstLine(Exception e) {
    return String.valueOf(e.getMessage()).lines().findFirst().orElse("");
  }

  static synchronized void release(Lease lease) {
    lease.users--;
    if (lease.left) {
      closeIfLeft(lease);
    } else {
      leaveRemoved();
    }
  }

  private static RuntimeException unsafe(PrivateFolders.UnsafePathException e) {
    return Failure.inTask("UnsafePathError: " + e.getMessage() + " with lookup.cache-dir", e);
  }

  private static synchronized Lease leased(Path folder, long mark) {
    Lease lease = OPEN.get(folder);
    Object stamp = stamp(folder);
    if (lease == null
        || !isOf(mark, lease.mark)
        || stamp != null && !stamp.equals(lease.stamp) && isThere(folder, mark)) {
      return null;
    }
    // Removed from disk by now, or replaced by another of its number: what is open stays
    // readable.
    lease.users++;
    return lease;
  }

  private static synchronized Lease opened(Path folder, long mark) throws IOException {
    Lease other = leased(folder, mark);
    if (other != null) {
      return other;
    }
    Lease lease = openAsItIs(folder);
    if (!isOf(mark, lease.mark)) {
      lease.state.close();
      throw new NoSuchFileException(
          folder.toString()); // it has just been replaced by another of its number
    }
    lease.users = 1;
    leave(OPEN.put(folder, lease));
    leaveRemoved();
    return lease;
  }

  private static Lease openAsItIs(Path folder) throws IOException {
    while (true) {
      Object stamp = stamp(folder);
      long mark = markIn(folder);
      CacheState state = CacheState.open(folder);
      Object now = stamp(folder);
      if (stamp != null && (now == null || now.equals(stamp))) {
        return new Lease(state, stamp, mark);
      }
      state.close(); // another one has come into its place, of which it may have files
    }
  }

  private static void leaveRemoved() {
    Iterator<Map.Entry<Path, Lease>> eldestFirst = OPEN.entrySet().iterator();
    int open = OPEN.size();
    while (eldestFirst.hasNext()) {
      Map.Entry<Path, Lease> each = eldestFirst.next();
      if (each.getValue().users == 0 && stamp(each.getKey()) == null || open > MOST_OPEN) {
        eldestFirst.remove();
        leave(each.getValue());
        open--;
      }
    }
  }

  private static void leave(Lease lease) {
    if (lease != null) {
      lease.left = true;
      closeIfLeft(lease);
    }
  }

  private static void closeIfLeft(Lease lease) {
    if (lease.left && lease.users == 0) {
      lease.state.close();
    }
  }

  /**
   * The mark of the snapshot whose state is in a folder, as {@code mark_of} of {@code
   * lookup/cache/version_info.py} has it; 0 if there is none.
   */
  private static long markIn(Path folder) {
    try {
      return markOf(CacheState.Info.read(folder).fingerprint());
    } catch (NoSuchFileException | FileNotFoundException e) {
      return 0;
    } catch (IOException e) {
      throw Failure.inTask("LookupCacheError: " + e.getMessage(), e);
    }
  }

  /** Tells whether a state is the one asked for by a mark; 0: any is. */
  private static boolean isOf(long asked, long mark) {
    return asked == 0 || asked == mark;
  }

  private static boolean isThere(Path folder, long mark) {
    return mark == 0 ? Files.exists(folder.resolve(CacheState.Info.FILE)) : markIn(folder) == mark;
  }

  private static String wish(long snapshot, long mark) {
    return snapshot + (mark == 0 ? "" : "-" + mark);
  }

  static long markOf(String fingerprint) {
    try {
      byte[] digest =
          MessageDigest.getInstance("SHA-256").digest(fingerprint.getBytes(StandardCharsets.UTF_8));
      return Math.max(1, ByteBuffer.wrap(digest).getLong() >>> 1);
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException(e);
    }
  }

  private static Object stamp(Path folder) {
    try {
      BasicFileAttributes attributes =
          Files.readAttributes(folder.resolve(CacheState.Info.FILE), BasicFileAttributes.class);
      return attributes.fileKey() + " " + attributes.lastModifiedTime();
    } catch (IOException e) {
      return null;
    }
  }

  // --- states that are not there yet; the Python module `state_wait` does the same for its workers
  // ---

  private static void await(Path cache, Path folder, long snapshot, long mark, double seconds) {
    long started = System.nanoTime();
    long seen = started;
    while (!isThere(folder, mark)) {
      checkIfThere(cache);
      if (TaskContext.get() != null) {
        TaskContext.get().killTaskIfInterrupted();
      }
      throwRefusal(cache, snapshot, mark);
      want(cache, snapshot, mark);
      if (CachePaths.hasOwner(cache)) {
        seen = System.nanoTime();
      } else if (secondsSince(seen) > Math.min(seconds, OWNER_SECONDS)) {
        throw Failure.inTask(
            "LookupCacheError: no owner builds the lookup cache "
                + cache
                + " on this host, so snapshot "
                + snapshot
                + " never comes: start Spark with spark.plugins=io.lockgate.spark.LockgatePlugin,"
                + " which has executors run owners, and see the executor's log",
            null);
      }
      if (secondsSince(started) > seconds) {
        throw Failure.inTask(
            "LookupTimeoutError: snapshot "
                + snapshot
                + " was not built in the lookup cache "
                + cache
                + " of this host in "
                + seconds
                + " s (lookup.timeout); see "
                + cache.resolve("owner.log"),
            null);
      }
      try {
        Thread.sleep(POLL_MILLIS);
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        throw Failure.inTask("interrupted while waiting for the lookup cache " + cache, e);
      }
    }
  }

  private static double secondsSince(long nanos) {
    return (System.nanoTime() - nanos) / (double) TimeUnit.SECONDS.toNanos(1);
  }

  private static void checkIfThere(Path cache) {
    try {
      PrivateFolders.check(cache);
    } catch (PrivateFolders.UnsafePathException e) {
      throw unsafe(e);
    } catch (IOException e) {
      // Nobody has made the folder yet.
    }
  }

  private static void want(Path cache, long snapshot, long mark) {
    Path wish = cache.resolve("wanted").resolve(wish(snapshot, mark));
    try {
      Files.createFile(wish);
    } catch (FileAlreadyExistsException e) {
      touch(wish);
    } catch (IOException e) {
      // Nobody has made the folder yet.
    }
  }

  private static void touch(Path wish) {
    try {
      Files.setLastModifiedTime(wish, FileTime.from(Instant.now()));
    } catch (IOException e) {
      // The wish has just been fulfilled.
    }
  }

  private static void throwRefusal(Path cache, long snapshot, long mark) {
    Path refusal = cache.resolve("wanted").resolve(wish(snapshot, mark) + ".error");
    JsonNode error;
    try {
      error = Bridge.JSON.readTree(Files.readString(refusal));
      Files.deleteIfExists(refusal);
    } catch (IOException e) {
      return; // the owner has not refused
    }
    try {
      String type = CacheState.Info.text(error, "type", refusal);
      throw Failure.inTask(type + ": " + CacheState.Info.text(error, "message", refusal), null);
    } catch (IOException e) {
      throw Failure.inTask("LookupCacheError: " + e.getMessage(), e);
    }
  }
}
