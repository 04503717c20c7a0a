package io.lockgate.spark.bridge;

import io.lockgate.spark.files.io.PrivateFolders;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SeekableByteChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.OpenOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Set;
import jdk.net.ExtendedSocketOptions;

/**
 * The folder of the driver's Python for its socket and for long messages, closed to other users.
 */
final class MessageFolder {
  private static final Set<PosixFilePermission> OWNER_ONLY =
      PosixFilePermissions.fromString("rw-------");

  private final Path path;

  MessageFolder(Path path) throws IOException {
    PrivateFolders.check(path);
    this.path = path;
  }

  Path path() {
    return path;
  }

  Path socket() {
    return path.resolve("socket");
  }

  /**
   * Refuses a socket whose other end is a process of another user, if the system reports the user.
   */
  void checkPeer(SocketChannel channel) throws IOException {
    if (channel.supportedOptions().contains(ExtendedSocketOptions.SO_PEERCRED)
        && !channel
            .getOption(ExtendedSocketOptions.SO_PEERCRED)
            .user()
            .equals(Files.getOwner(path, LinkOption.NOFOLLOW_LINKS))) {
      throw new IOException("the process at " + socket() + " is another user's");
    }
  }

  void write(String name, byte[] content) throws IOException {
    forget(name);
    Set<OpenOption> fresh = Set.of(StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE);
    try (SeekableByteChannel file =
        Files.newByteChannel(
            path.resolve(name), fresh, PosixFilePermissions.asFileAttribute(OWNER_ONLY))) {
      ByteBuffer left = ByteBuffer.wrap(content);
      while (left.hasRemaining()) {
        file.write(left);
      }
    }
  }

  /** Reads a file of {@code length} bytes that Python left here, and removes it. */
  byte[] take(String name, int length) throws IOException {
    Path file = path.resolve(name);
    PrivateFolders.checkFile(file);
    try (SeekableByteChannel in =
        Files.newByteChannel(file, StandardOpenOption.READ, LinkOption.NOFOLLOW_LINKS)) {
      if (in.size() != length) {
        throw new IOException("the file " + file + " is not what Lockgate's Python side wrote");
      }
      ByteBuffer content = ByteBuffer.allocate(length);
      while (content.hasRemaining() && in.read(content) >= 0) {
        // Until all of it is there.
      }
      return content.array();
    } finally {
      forget(name);
    }
  }

  void forget(String name) throws IOException {
    Files.deleteIfExists(path.resolve(name));
  }
}
