package io.lockgate.spark.lookup;

import com.fasterxml.jackson.databind.JsonNode;
import io.lockgate.spark.Bridge;
import io.lockgate.spark.Failure;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.FileTime;
import java.time.Instant;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.spark.TaskContext;

/**
 * The states that this JVM has open, each once for all of its tasks.
 *
 * <p>A state that nobody uses is closed once the owner has removed it, so that the disk has its space back, or when many are open.
 */
final class States {
  /** The file that is there if a state is complete. */
  static final String INFO = "GENERATION.json";

  /** A query needs one state for each of its lookups, and one more while they change. */
  private static final int MOST_OPEN = 16;
  private static final long POLL_MILLIS = 50;
  /** An executor starts its process within a second or two; one on a busy host takes longer. */
  private static final double OWNER_SECONDS = 60;

  private static final Map<Path, Lease> OPEN = new LinkedHashMap<>(16, 0.75f, true);

  private States() {}

  /** A state open for a number of users; its mark tells it from another of the same number, built after a rollback. */
  static final class Lease {
    final CacheState state;
    private final Object mark;
    private int users;
    private boolean left;

    private Lease(CacheState state, Object mark) {
      this.state = state;
      this.mark = mark;
    }
  }

  /** Takes the state at a snapshot, waiting until it is built; must be given back with {@link #release}. */
  static Lease acquire(Path cache, long snapshot, double waitSeconds) {
    Path folder = cache.resolve("generations").resolve(Long.toString(snapshot));
    Lease known = known(folder);
    if (known != null) {
      return known;
    }
    await(cache, folder, snapshot, waitSeconds);
    try {
      return opened(folder);
    } catch (NoSuchFileException | FileNotFoundException e) {
      throw Failure.inTask(
          "LookupCacheError: the lookup cache " + cache + " does not hold snapshot " + snapshot + " any more: run the query again", e);
    } catch (IOException e) {
      throw Failure.inTask(
          "LookupCacheError: cannot open the lookup cache " + folder + ": " + firstLine(e) + "; lockgate lookup rebuild " + cache
              + " makes it anew", e);
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

  private static synchronized Lease known(Path folder) {
    Lease known = OPEN.get(folder);
    Object mark = mark(folder);
    if (known == null || mark != null && !mark.equals(known.mark)) {
      return null;
    }
    // Removed from disk meanwhile: what is open stays readable.
    known.users++;
    return known;
  }

  private static synchronized Lease opened(Path folder) throws IOException {
    Lease other = known(folder);
    if (other != null) {
      return other;
    }
    Lease lease = openAsItIs(folder);
    lease.users = 1;
    leave(OPEN.put(folder, lease));
    leaveRemoved();
    return lease;
  }

  private static Lease openAsItIs(Path folder) throws IOException {
    while (true) {
      Object mark = mark(folder);
      CacheState state = CacheState.open(folder);
      Object now = mark(folder);
      if (mark != null && (now == null || now.equals(mark))) {
        return new Lease(state, mark);
      }
      state.close(); // another one came into its place meanwhile, of which it may have files
    }
  }

  private static void leaveRemoved() {
    Iterator<Map.Entry<Path, Lease>> eldestFirst = OPEN.entrySet().iterator();
    int open = OPEN.size();
    while (eldestFirst.hasNext()) {
      Map.Entry<Path, Lease> each = eldestFirst.next();
      if (each.getValue().users == 0 && mark(each.getKey()) == null || open > MOST_OPEN) {
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

  private static Object mark(Path folder) {
    try {
      BasicFileAttributes attributes = Files.readAttributes(folder.resolve(INFO), BasicFileAttributes.class);
      return attributes.fileKey() + " " + attributes.lastModifiedTime();
    } catch (IOException e) {
      return null;
    }
  }

  // --- states that are not there yet; the Python module `waiting` does the same for its workers ---

  private static void await(Path cache, Path folder, long snapshot, double seconds) {
    long started = System.nanoTime();
    long seen = started;
    while (!Files.exists(folder.resolve(INFO))) {
      if (TaskContext.get() != null) {
        TaskContext.get().killTaskIfInterrupted();
      }
      throwRefusal(cache, snapshot);
      want(cache, snapshot);
      if (CachePlaces.hasOwner(cache)) {
        seen = System.nanoTime();
      } else if (secondsSince(seen) > Math.min(seconds, OWNER_SECONDS)) {
        throw Failure.inTask(
            "LookupCacheError: no owner builds the lookup cache " + cache + " on this host, so snapshot " + snapshot
                + " never comes: start Spark with spark.plugins=io.lockgate.spark.LockgatePlugin, which has executors run owners,"
                + " and see the executor's log", null);
      }
      if (secondsSince(started) > seconds) {
        throw Failure.inTask(
            "LookupTimeoutError: snapshot " + snapshot + " was not built in the lookup cache " + cache + " of this host in "
                + seconds + " s (lookup.timeout); see " + cache.resolve("owner.log"), null);
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

  private static void want(Path cache, long snapshot) {
    Path wish = cache.resolve("wanted").resolve(Long.toString(snapshot));
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

  private static void throwRefusal(Path cache, long snapshot) {
    Path refusal = cache.resolve("wanted").resolve(snapshot + ".error");
    JsonNode error;
    try {
      error = Bridge.JSON.readTree(Files.readString(refusal));
      Files.deleteIfExists(refusal);
    } catch (IOException e) {
      return;
    }
    throw Failure.inTask(error.path("type").asText("LookupCacheError") + ": " + error.path("message").asText(), null);
  }
}
