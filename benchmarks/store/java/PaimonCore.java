import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.paimon.catalog.Catalog;
import org.apache.paimon.catalog.CatalogContext;
import org.apache.paimon.catalog.CatalogFactory;
import org.apache.paimon.catalog.Identifier;
import org.apache.paimon.data.BinaryRow;
import org.apache.paimon.data.BinaryString;
import org.apache.paimon.data.GenericRow;
import org.apache.paimon.data.Timestamp;
import org.apache.paimon.disk.IOManager;
import org.apache.paimon.index.BucketAssigner;
import org.apache.paimon.index.HashBucketAssigner;
import org.apache.paimon.options.Options;
import org.apache.paimon.table.BucketMode;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.table.sink.BatchTableCommit;
import org.apache.paimon.table.sink.BatchTableWrite;
import org.apache.paimon.table.sink.BatchWriteBuilder;
import org.apache.paimon.table.sink.CommitMessage;
import org.apache.paimon.table.sink.RowPartitionKeyExtractor;

/**
 * Upserts and full compaction by Paimon's own core, with a thread for each of two writers. Reads
 * lines "WAREHOUSE TABLE upsert KEYS" and "WAREHOUSE TABLE compact BUCKETS"; answers each by the
 * seconds it took, or by an error.
 */
public final class PaimonCore {
  private static final int WRITERS = 2;
  private static final long SECONDS = 1_700_000_000L;

  private PaimonCore() {}

  public static void main(String[] arguments) throws Exception {
    PrintStream answers = System.out;
    System.setOut(System.err);
    ExecutorService threads = Executors.newFixedThreadPool(WRITERS);
    IOManager io = IOManager.create(arguments[0]);
    BufferedReader lines =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      String[] asked = line.split(" ");
      try {
        long started = System.nanoTime();
        run(threads, io, asked);
        answers.println((System.nanoTime() - started) / 1e9);
      } catch (Exception error) {
        error.printStackTrace();
        answers.println(error);
      }
      answers.flush();
    }
    threads.shutdown();
  }

  private static void run(ExecutorService threads, IOManager io, String[] asked) throws Exception {
    Options options = new Options();
    options.set("warehouse", asked[0]);
    try (Catalog catalog = CatalogFactory.createCatalog(CatalogContext.create(options))) {
      FileStoreTable table = (FileStoreTable) catalog.getTable(Identifier.fromString(asked[1]));
      boolean upserts = asked[2].equals("upsert");
      if (upserts) {
        // As Lockgate, which compacts when it is asked only.
        table = table.copy(java.util.Map.of("write-only", "true"));
      }
      FileStoreTable opened = table;
      BatchWriteBuilder builder = table.newBatchWriteBuilder();
      List<BatchTableWrite> writes = new ArrayList<>();
      List<Callable<Void>> parts = new ArrayList<>();
      for (int writer = 0; writer < WRITERS; writer++) {
        BatchTableWrite write = builder.newWrite();
        write.withIOManager(io);
        writes.add(write);
        int number = writer;
        long size = Long.parseLong(asked[3]);
        parts.add(
            () -> {
              if (upserts) {
                upsert(opened, write, number, size);
              } else {
                for (int bucket = number; bucket < size; bucket += WRITERS) {
                  write.compact(BinaryRow.EMPTY_ROW, bucket, true);
                }
              }
              return null;
            });
      }
      for (Future<Void> part : threads.invokeAll(parts)) {
        part.get();
      }
      List<Callable<List<CommitMessage>>> ends = new ArrayList<>();
      writes.forEach(write -> ends.add(write::prepareCommit));
      List<CommitMessage> messages = new ArrayList<>();
      for (Future<List<CommitMessage>> end : threads.invokeAll(ends)) {
        messages.addAll(end.get());
      }
      try (BatchTableCommit commit = builder.newCommit()) {
        commit.commit(messages);
      }
      for (BatchTableWrite write : writes) {
        write.close();
      }
    }
  }

  /** Writes those changes that are this writer's: one in a hundred keys, and new ones. */
  private static void upsert(FileStoreTable table, BatchTableWrite write, int writer, long keys)
      throws Exception {
    boolean dynamic = table.bucketMode() == BucketMode.HASH_DYNAMIC;
    RowPartitionKeyExtractor extractor = new RowPartitionKeyExtractor(table.schema());
    HashBucketAssigner assigner =
        dynamic
            ? new HashBucketAssigner(
                table.snapshotManager(),
                "bench",
                table.store().newIndexFileHandler(),
                WRITERS,
                WRITERS,
                writer,
                table.coreOptions().dynamicBucketTargetRowNum(),
                -1)
            : null;
    for (long change = 0; change < keys / 100 + keys / 1000; change++) {
      GenericRow row = row(change < keys / 100 ? change * 100 : keys + change - keys / 100);
      if (!dynamic) {
        if (write.getBucket(row) % WRITERS == writer) {
          write.write(row);
        }
        continue;
      }
      int hash = extractor.trimmedPrimaryKey(row).hashCode();
      int mine =
          BucketAssigner.computeAssigner(
              extractor.partition(row).hashCode(), hash, WRITERS, WRITERS);
      if (mine == writer) {
        write.write(row, assigner.assign(extractor.partition(row), hash));
      }
    }
  }

  private static GenericRow row(long id) {
    return GenericRow.of(
        id,
        BinaryString.fromString("n" + id),
        (double) (id % 8999 + 1),
        (int) (id % 71),
        Timestamp.fromMicros((SECONDS + id) * 1_000_000));
  }
}
