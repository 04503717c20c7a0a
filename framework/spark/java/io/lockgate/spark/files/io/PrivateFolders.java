package io.lockgate.spark.files.io;

import com.sun.security.auth.module.UnixSystem;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.NotDirectoryException;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Iterator;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;

/**
 * Folders and files of this user alone, for local state, and the check that every opener of it
 * makes. {@code framework/io/private_folder.py} has the same rules and says why; both pass {@code
 * tests/fixtures/private_folders.json}.
 */
public final class PrivateFolders {
  private static final long UID = effectiveUid();
  private static final int OTHERS_WRITE = 0022;
  private static final int OTHERS_ANYTHING = 0077;
  private static final int STICKY = 01000;
  private static final int KIND = 0170000;
  private static final int FOLDER = 0040000;
  private static final int LINK = 0120000;
  private static final int FILE = 0100000;
  private static final int MODE = 07777;
  private static final int MOST_LINKS = 40;
  private static final String ADVICE = "remove it if it is not yours, or choose another folder";
  private static final Set<PosixFilePermission> PRIVATE =
      PosixFilePermissions.fromString("rwx------");
  private static final Set<PosixFilePermission> READABLE =
      PosixFilePermissions.fromString("rwxr-xr-x");

  private PrivateFolders() {}

  /** Raised for a path that another user could have made. */
  public static final class UnsafePathException extends IOException {
    private static final long serialVersionUID = 1L;

    UnsafePathException(String message) {
      super(message);
    }
  }

  /** The user that this process's files belong to. */
  public static long uid() {
    return UID;
  }

  private static long effectiveUid() {
    try (Stream<String> lines = Files.lines(Path.of("/proc/self/status"))) {
      String line = lines.filter(each -> each.startsWith("Uid:")).findFirst().orElseThrow();
      return Long.parseLong(line.split("\\s+")[2]);
    } catch (IOException | UncheckedIOException e) {
      return new UnixSystem()
          .getUid(); // not Linux; there it would say 0 for a user without a name, as in many
      // containers
    }
  }

  private record Status(long uid, int mode) {
    boolean is(int kind) {
      return (mode & KIND) == kind;
    }

    String permissions() {
      return String.format("%04o", mode & MODE);
    }
  }

  /**
   * Makes a folder that only this user can enter, with those above it, and returns its real path.
   */
  public static Path make(Path path) throws IOException {
    Path real = make(path.toAbsolutePath(), PRIVATE);
    checkOwn(real, status(real));
    if ((status(real).mode() & OTHERS_ANYTHING) != 0) {
      Files.setPosixFilePermissions(real, PRIVATE);
    }
    return real;
  }

  /**
   * Checks a folder that another process made, before anything in it is opened; returns its real
   * path.
   */
  public static Path check(Path path) throws IOException {
    Path real = checkOwn(path);
    Status status = status(real);
    if ((status.mode() & OTHERS_ANYTHING) != 0) {
      throw new UnsafePathException(
          real
              + " is open to other users (mode "
              + status.permissions()
              + "): chmod 700 it, or "
              + ADVICE);
    }
    return real;
  }

  /**
   * Checks that a folder, as those inside a private one, is this user's and that nobody else could
   * have put anything there.
   */
  public static Path checkOwn(Path path) throws IOException {
    Path real = checkWay(path);
    Status status = status(real);
    if (!status.is(FOLDER)) {
      throw new NotDirectoryException(real.toString());
    }
    checkOwn(real, status);
    return real;
  }

  /** Checks that a file in a folder that was checked is a regular one of this user. */
  public static void checkFile(Path path) throws IOException {
    Status status = status(path);
    if (status.is(LINK)) {
      throw new UnsafePathException(path + " is a link, where a file is expected: " + ADVICE);
    }
    checkOwn(path, status);
    if (!status.is(FILE)) {
      throw new UnsafePathException(path + " is not a regular file: " + ADVICE);
    }
  }

  /**
   * Follows a path from the root on and returns the real one; every part is root's or this user's.
   */
  public static Path checkWay(Path path) throws IOException {
    Path at = Path.of("/");
    checkPart(at, status(at));
    Deque<String> pending = new ArrayDeque<>();
    path.toAbsolutePath().forEach(part -> pending.addLast(part.toString()));
    int links = 0;
    while (!pending.isEmpty()) {
      String name = pending.removeFirst();
      if (name.isEmpty() || name.equals(".")) {
        continue;
      }
      if (name.equals("..")) { // `at` is real, so this is the folder above
        at = at.getParent() == null ? at : at.getParent();
        continue;
      }
      Path here = at.resolve(name);
      Status status = status(here);
      checkPart(here, status);
      if (!status.is(LINK)) {
        at = here;
        continue;
      }
      if (++links > MOST_LINKS) {
        throw new UnsafePathException(path + " leads through too many links: " + ADVICE);
      }
      Path target = Files.readSymbolicLink(here);
      at = target.isAbsolute() ? Path.of("/") : at;
      ArrayDeque<String> parts = new ArrayDeque<>();
      target.forEach(part -> parts.addFirst(part.toString()));
      for (Iterator<String> last = parts.iterator(); last.hasNext(); ) {
        pending.addFirst(last.next());
      }
    }
    return at;
  }

  private static Path make(Path path, Set<PosixFilePermission> permissions) throws IOException {
    try {
      return checkWay(path);
    } catch (NoSuchFileException e) {
      if (Files.isSymbolicLink(path)) {
        throw new UnsafePathException(path + " is a link to nothing: " + ADVICE);
      }
    }
    make(path.getParent(), READABLE);
    try {
      Files.createDirectory(path, PosixFilePermissions.asFileAttribute(permissions));
    } catch (FileAlreadyExistsException e) {
      // By another process: it is checked all the same.
    }
    return checkWay(path);
  }

  private static Status status(Path path) throws IOException {
    Map<String, Object> read =
        Files.readAttributes(path, "unix:uid,mode", LinkOption.NOFOLLOW_LINKS);
    return new Status(
        Integer.toUnsignedLong((Integer) read.get("uid")), (Integer) read.get("mode"));
  }

  private static void checkPart(Path path, Status status) throws UnsafePathException {
    if (status.uid() != 0) {
      checkOwner(path, status);
    }
    if (status.is(FOLDER) && (status.mode() & STICKY) == 0) {
      checkClosed(path, status);
    }
  }

  private static void checkOwn(Path path, Status status) throws UnsafePathException {
    checkOwner(path, status);
    checkClosed(path, status);
  }

  private static void checkOwner(Path path, Status status) throws UnsafePathException {
    if (status.uid() != UID) {
      throw new UnsafePathException(
          (status.is(LINK) ? "the link " : "")
              + path
              + " belongs to uid "
              + status.uid()
              + ", this process to uid "
              + UID
              + ": "
              + ADVICE);
    }
  }

  private static void checkClosed(Path path, Status status) throws UnsafePathException {
    if ((status.mode() & OTHERS_WRITE) != 0) {
      throw new UnsafePathException(
          "other users can write to "
              + path
              + " (mode "
              + status.permissions()
              + "), so its content may be theirs: inspect it and run chmod go-w on it, or "
              + ADVICE);
    }
  }
}
