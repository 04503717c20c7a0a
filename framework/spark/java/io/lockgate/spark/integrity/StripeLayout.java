package io.lockgate.spark.integrity;

import io.lockgate.spark.keys.GranuleMac;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.orc.OrcProto;
import org.apache.orc.impl.StreamName;

/**
 * The places of the granules of one stripe: those of its streams one behind the other, then those
 * of its footer.
 */
final class StripeLayout {
  /**
   * A granule: of which stream, the how manieth of it and of the stripe, and its bytes in the file.
   */
  record Granule(int stream, int number, int tag, long start, long end) {}

  private final long end;
  private final long[] starts;
  private final int[] streams;
  private final int[] tags;
  private final int granules;

  private StripeLayout(long end, List<long[]> pieces) {
    this.end = end;
    this.starts = new long[pieces.size()];
    this.streams = new int[pieces.size()];
    this.tags = new int[pieces.size()];
    int tag = 0;
    for (int i = 0; i < starts.length; i++) {
      starts[i] = pieces.get(i)[0];
      streams[i] = (int) pieces.get(i)[1];
      tags[i] = tag;
      tag += granules((i + 1 < starts.length ? pieces.get(i + 1)[0] : end) - starts[i]);
    }
    this.granules = tag;
  }

  /** Returns how many granules a stream of so many bytes has. */
  static int granules(long length) {
    return (int) ((length + GranuleMac.GRANULE - 1) / GranuleMac.GRANULE);
  }

  /** The layout that a stripe's footer tells of, or null where that does not fill the stripe. */
  static StripeLayout of(
      long offset,
      long indexLength,
      long dataLength,
      long footerLength,
      OrcProto.StripeFooter footer) {
    List<long[]> pieces = new ArrayList<>();
    long dataStart = offset + indexLength;
    long footerStart = dataStart + dataLength;
    long[] next = {offset, 0};
    if (!add(footer, StreamName.Area.INDEX, dataStart, next, pieces)
        || !add(footer, StreamName.Area.DATA, footerStart, next, pieces)) {
      return null;
    }
    pieces.add(new long[] {footerStart, GranuleMac.STRIPE_FOOTER});
    return new StripeLayout(footerStart + footerLength, pieces);
  }

  /**
   * Adds the streams of one area: not encrypted ones, then each variant's; false where they do not
   * fill it.
   */
  private static boolean add(
      OrcProto.StripeFooter footer,
      StreamName.Area area,
      long end,
      long[] next,
      List<long[]> pieces) {
    boolean fits = add(footer.getStreamsList(), area, end, next, pieces);
    for (OrcProto.StripeEncryptionVariant variant : footer.getEncryptionList()) {
      fits = fits && add(variant.getStreamsList(), area, end, next, pieces);
    }
    return fits && next[0] == end;
  }

  private static boolean add(
      List<OrcProto.Stream> streams,
      StreamName.Area area,
      long end,
      long[] next,
      List<long[]> pieces) {
    for (OrcProto.Stream stream : streams) {
      OrcProto.Stream.Kind kind = stream.getKind();
      boolean placeholder =
          kind == OrcProto.Stream.Kind.ENCRYPTED_INDEX
              || kind == OrcProto.Stream.Kind.ENCRYPTED_DATA;
      if (placeholder || StreamName.getArea(kind) != area) {
        continue;
      }
      if (stream.getLength() < 0 || stream.getLength() > end - next[0]) {
        return false;
      }
      if (stream.getLength() > 0) {
        pieces.add(new long[] {next[0], next[1]});
      }
      next[0] += stream.getLength();
      next[1]++;
    }
    return true;
  }

  /** Returns how many granules the stripe has, those of its footer included. */
  int granules() {
    return granules;
  }

  private int piece(long position) {
    int found = Arrays.binarySearch(starts, position);
    return found >= 0 ? found : -found - 2;
  }

  private long end(int piece) {
    return piece + 1 < starts.length ? starts[piece + 1] : end;
  }

  /** Returns where the granule begins that holds a position in the stripe. */
  long granuleStart(long position) {
    long start = starts[piece(position)];
    return position - (position - start) % GranuleMac.GRANULE;
  }

  /** Returns where the granule ends that holds a position in the stripe. */
  long granuleEnd(long position) {
    return Math.min(granuleStart(position) + GranuleMac.GRANULE, end(piece(position)));
  }

  /** The granule that begins at a position. */
  Granule granule(long start) {
    int piece = piece(start);
    int number = (int) ((start - starts[piece]) / GranuleMac.GRANULE);
    return new Granule(streams[piece], number, tags[piece] + number, start, granuleEnd(start));
  }
}
