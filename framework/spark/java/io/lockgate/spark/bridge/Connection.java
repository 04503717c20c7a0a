package io.lockgate.spark.bridge;

import java.io.Closeable;
import java.io.EOFException;
import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ClosedByInterruptException;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;

/**
 * One connection to the driver's Python, over which one question is asked at a time.
 *
 * <p>A frame is one byte for its kind, four for its length (big-endian), and the payload. The
 * payload of a long message is in the connection's file of the private folder, and no name travels.
 * {@code framework/spark/bridge/transport.py} is the other end.
 */
final class Connection implements Closeable {
  private final SocketChannel channel;
  private final Selector selector;
  private final SelectionKey key;
  private final MessageFolder folder;
  private final ByteBuffer header = ByteBuffer.allocate(FrameHeader.SIZE);
  private String name;
  private int largestFrame = FrameHeader.LARGEST_FRAME;
  private boolean interruptible;
  private boolean interrupted;

  private Connection(SocketChannel channel, MessageFolder folder) throws IOException {
    this.channel = channel;
    this.folder = folder;
    this.selector = Selector.open();
    channel.configureBlocking(false);
    this.key = channel.register(selector, 0);
  }

  /** Connects, checks the user of the other end, and sends the secret as proof of this one. */
  static Connection open(MessageFolder folder, String secret) throws IOException {
    SocketChannel channel = connect(folder);
    try {
      folder.checkPeer(channel);
      Connection connection = new Connection(channel, folder);
      connection.sayHello(secret);
      return connection;
    } catch (IOException | RuntimeException e) {
      channel.close();
      throw e;
    }
  }

  private static SocketChannel connect(MessageFolder folder) throws IOException {
    boolean interrupted = false;
    try {
      while (true) {
        SocketChannel channel = SocketChannel.open(StandardProtocolFamily.UNIX);
        try {
          channel.connect(UnixDomainSocketAddress.of(folder.socket()));
          return channel;
        } catch (ClosedByInterruptException e) {
          // The question itself decides what an interrupt does.
          interrupted |= Thread.interrupted();
        } catch (IOException e) {
          channel.close();
          throw e;
        }
      }
    } finally {
      restore(interrupted);
    }
  }

  private void sayHello(String secret) throws IOException {
    try {
      name =
          new String(
              ask(secret.getBytes(StandardCharsets.US_ASCII), false), StandardCharsets.US_ASCII);
    } catch (IOException | RuntimeException e) {
      close();
      throw e;
    }
    if (!name.matches("[0-9a-f]{32}")) {
      close();
      throw new IOException("the process at " + folder.socket() + " is not Lockgate's Python side");
    }
  }

  /**
   * Sends a question and waits for the answer.
   *
   * <p>An interrupt of this thread is kept until the answer is there, unless {@code interruptible}:
   * to give up a question that changes something would leave open whether it was done. Then the
   * connection is closed and {@link ClosedByInterruptException} thrown.
   */
  byte[] ask(byte[] question, boolean interruptible) throws IOException {
    this.interruptible = interruptible;
    interrupted = false;
    try {
      send(question);
      return receive();
    } finally {
      restore(interrupted);
    }
  }

  /**
   * Sends longer payloads through files from now on: for tests, which should not write megabytes.
   */
  void limitFrames(int bytes) {
    largestFrame = bytes;
  }

  private void send(byte[] payload) throws IOException {
    boolean inline = payload.length <= largestFrame;
    if (payload.length > FrameHeader.LARGEST_MESSAGE) {
      throw new IOException(
          "a request of " + payload.length + " bytes is larger than the bridge allows");
    }
    if (!inline) {
      folder.write(name + ".question", payload);
    }
    ByteBuffer out = ByteBuffer.allocate(FrameHeader.SIZE + (inline ? payload.length : 0));
    FrameHeader.put(out, inline, payload.length);
    if (inline) {
      out.put(payload);
    }
    out.flip();
    while (out.hasRemaining()) {
      if (channel.write(out) == 0) {
        await(SelectionKey.OP_WRITE);
      }
    }
  }

  private byte[] receive() throws IOException {
    fill(header.clear());
    int length = FrameHeader.length(header);
    if (!FrameHeader.isInline(header)) {
      return folder.take(name + ".answer", length);
    }
    byte[] payload = new byte[length];
    fill(ByteBuffer.wrap(payload));
    return payload;
  }

  private void fill(ByteBuffer buffer) throws IOException {
    while (buffer.hasRemaining()) {
      int count = channel.read(buffer);
      if (count < 0) {
        throw new EOFException(
            "Lockgate's Python side closed the connection: it ended, or refused it");
      }
      if (count == 0) {
        await(SelectionKey.OP_READ);
      }
    }
  }

  // A channel that blocks is closed by an interrupt; a selector only wakes up.
  private void await(int operation) throws IOException {
    key.interestOps(operation);
    selector.select();
    selector.selectedKeys().clear();
    if (Thread.interrupted()) {
      interrupted = true;
      if (interruptible) {
        throw new ClosedByInterruptException();
      }
    }
  }

  private static void restore(boolean interrupted) {
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  @Override
  public void close() {
    try {
      // First, for a channel lets go of its descriptor when no selector knows it.
      selector.close();
      channel.close();
      folder.forget(name + ".question");
    } catch (IOException e) {
      // Nothing is asked over it any more, whether it closed well or not.
    }
  }
}
