import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.options.ExpireConfig;
import org.apache.paimon.reader.RecordReader;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.table.source.ReadBuilder;
import org.apache.paimon.table.source.Split;
import org.apache.paimon.table.source.StreamTableScan;

/** What a stream reads of a table, and the expiry of changes that only streams need. */
final class Changes {
  private Changes() {}

  /** The rows from a snapshot on, each with its kind first, as a stream gets them. */
  static List<List<Object>> follow(FileStoreTable table, long from) throws Exception {
    ReadBuilder builder = table.newReadBuilder();
    StreamTableScan scan = builder.newStreamScan();
    scan.restore(from);
    List<List<Object>> rows = new ArrayList<>();
    Long before = null;
    while (!scan.checkpoint().equals(before)) {
      before = scan.checkpoint();
      for (Split split : scan.plan().splits()) {
        try (RecordReader<InternalRow> reader = builder.newRead().createReader(split)) {
          reader.forEachRemaining(
              row -> {
                List<Object> shown = new ArrayList<>();
                shown.add(row.getRowKind().shortString());
                shown.addAll(Values.json(row, table.rowType()));
                rows.add(shown);
              });
        }
      }
    }
    return rows;
  }

  static int expire(FileStoreTable table, int retain) {
    ExpireConfig config =
        ExpireConfig.builder()
            .snapshotRetainMin(1)
            .changelogRetainMin(1)
            .changelogRetainMax(retain)
            .changelogTimeRetain(Duration.ofDays(1))
            .build();
    return table.newExpireChangelog().config(config).expire();
  }
}
