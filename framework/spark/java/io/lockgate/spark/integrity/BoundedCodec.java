package io.lockgate.spark.integrity;

import io.lockgate.spark.files.io.MetadataLimits;
import java.io.IOException;
import java.nio.ByteBuffer;
import org.apache.orc.CompressionCodec;
import org.apache.orc.CompressionKind;

/** A codec that unpacks at most a given number of bytes, if there is one. */
final class BoundedCodec implements CompressionCodec {
  private final CompressionCodec codec;
  private String what;
  private long stored;
  private long most;
  private long left = Long.MAX_VALUE;

  BoundedCodec(CompressionCodec codec) {
    this.codec = codec;
  }

  /** Bounds what is unpacked from here on: {@code bytes} of metadata, called {@code name}. */
  void bound(String name, long bytes) {
    what = name;
    stored = bytes;
    most = MetadataLimits.mostUnpacked(bytes);
    left = most;
  }

  /** Ends the bound: values are unpacked block by block, and never held as a whole. */
  void release() {
    left = Long.MAX_VALUE;
  }

  @Override
  public void decompress(ByteBuffer in, ByteBuffer out) throws IOException {
    codec.decompress(in, out);
    left -= out.remaining();
    if (left < 0) {
      throw new IOException(MetadataLimits.tooMuch(what, stored, most));
    }
  }

  @Override
  public Options getDefaultOptions() {
    return codec.getDefaultOptions();
  }

  @Override
  public boolean compress(ByteBuffer in, ByteBuffer out, ByteBuffer overflow, Options options) {
    throw new UnsupportedOperationException("it only reads");
  }

  @Override
  public void reset() {
    codec.reset();
  }

  @Override
  public void destroy() {
    codec.destroy();
  }

  @Override
  public CompressionKind getKind() {
    return codec.getKind();
  }

  /** Does nothing: the codec behind it is given back by the reader that took it. */
  @Override
  public void close() {}
}
