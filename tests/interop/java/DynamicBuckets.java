import org.apache.paimon.data.InternalRow;
import org.apache.paimon.index.HashBucketAssigner;
import org.apache.paimon.table.BucketMode;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.table.sink.RowPartitionKeyExtractor;
import org.apache.paimon.table.sink.TableWrite;

/** Paimon's own choice of buckets, which a writer of a table with dynamic buckets must be told. */
final class DynamicBuckets {
  private final RowPartitionKeyExtractor keys;
  private final HashBucketAssigner assigner;

  private DynamicBuckets(FileStoreTable table) {
    keys = new RowPartitionKeyExtractor(table.schema());
    assigner =
        new HashBucketAssigner(
            table.snapshotManager(),
            "referee",
            table.store().newIndexFileHandler(),
            1,
            1,
            0,
            table.coreOptions().dynamicBucketTargetRowNum(),
            -1);
  }

  /** Null for a table whose writers find buckets by themselves. */
  static DynamicBuckets of(FileStoreTable table) {
    return table.bucketMode() == BucketMode.HASH_DYNAMIC ? new DynamicBuckets(table) : null;
  }

  void write(TableWrite write, InternalRow row) throws Exception {
    int hash = keys.trimmedPrimaryKey(row).hashCode();
    write.write(row, assigner.assign(keys.partition(row), hash));
  }
}
