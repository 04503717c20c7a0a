import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.paimon.CoreOptions;
import org.apache.paimon.append.AppendCompactCoordinator;
import org.apache.paimon.append.AppendCompactTask;
import org.apache.paimon.data.BinaryRow;
import org.apache.paimon.disk.IOManager;
import org.apache.paimon.format.OrcOptions;
import org.apache.paimon.iceberg.IcebergOptions;
import org.apache.paimon.index.FileIndexProcessor;
import org.apache.paimon.io.CompactIncrement;
import org.apache.paimon.io.DataFileMeta;
import org.apache.paimon.io.DataIncrement;
import org.apache.paimon.manifest.ManifestEntry;
import org.apache.paimon.operation.BaseAppendFileStoreWrite;
import org.apache.paimon.operation.LocalOrphanFilesClean;
import org.apache.paimon.options.ConfigOption;
import org.apache.paimon.options.ExpireConfig;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.paimon.table.BucketMode;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.table.sink.BatchTableCommit;
import org.apache.paimon.table.sink.BatchTableWrite;
import org.apache.paimon.table.sink.BatchWriteBuilder;
import org.apache.paimon.table.sink.CommitMessage;
import org.apache.paimon.table.sink.CommitMessageImpl;
import org.apache.paimon.table.source.DataSplit;
import org.apache.paimon.table.source.Split;

/** What keeps a table in shape: compaction, expiry, orphan files, tags, branches, rollback. */
final class Upkeep {
  private Upkeep() {}

  static void compact(FileStoreTable table, IOManager io) throws Exception {
    List<CommitMessage> messages =
        table.bucketMode() == BucketMode.BUCKET_UNAWARE ? unaware(table) : buckets(table, io);
    try (BatchTableCommit commit = table.newBatchWriteBuilder().newCommit()) {
      commit.commit(messages);
    }
  }

  private static List<CommitMessage> unaware(FileStoreTable table) throws Exception {
    List<CommitMessage> messages = new ArrayList<>();
    BaseAppendFileStoreWrite write = (BaseAppendFileStoreWrite) table.store().newWrite("referee");
    for (AppendCompactTask task : new AppendCompactCoordinator(table, false).run()) {
      messages.add(task.doCompact(table, write));
    }
    return messages;
  }

  private static List<CommitMessage> buckets(FileStoreTable table, IOManager io) throws Exception {
    BatchWriteBuilder builder = table.newBatchWriteBuilder();
    try (BatchTableWrite write = builder.newWrite()) {
      write.withIOManager(io);
      Set<List<Object>> seen = new HashSet<>();
      for (Split split : table.newReadBuilder().newScan().plan().splits()) {
        BinaryRow partition = ((DataSplit) split).partition().copy();
        int bucket = ((DataSplit) split).bucket();
        if (seen.add(List.of(partition, bucket))) {
          write.compact(partition, bucket, true);
        }
      }
      return write.prepareCommit();
    }
  }

  /**
   * What Paimon's procedure `rewrite_file_index` does: each file is replaced by itself, with an
   * index.
   */
  static void index(FileStoreTable table) throws Exception {
    FileIndexProcessor processor = new FileIndexProcessor(table);
    List<CommitMessage> messages = new ArrayList<>();
    for (ManifestEntry entry : table.store().newScan().plan().files()) {
      List<DataFileMeta> indexed =
          List.of(processor.process(entry.partition(), entry.bucket(), entry));
      messages.add(
          new CommitMessageImpl(
              entry.partition(),
              entry.bucket(),
              entry.totalBuckets(),
              DataIncrement.emptyIncrement(),
              new CompactIncrement(List.of(entry.file()), indexed, List.of())));
    }
    try (BatchTableCommit commit = table.newBatchWriteBuilder().newCommit()) {
      commit.commit(messages);
    }
  }

  static int expire(FileStoreTable table, int retain) {
    ExpireConfig config =
        ExpireConfig.builder()
            .snapshotRetainMin(1)
            .snapshotRetainMax(retain)
            .snapshotTimeRetain(Duration.ZERO)
            .build();
    return table.newExpireSnapshots().config(config).expire();
  }

  static long orphans(FileStoreTable table, long olderThan) throws Exception {
    return new LocalOrphanFilesClean(table, olderThan).clean().getDeletedFileCount();
  }

  static void refer(FileStoreTable table, JsonNode json) {
    String name = json.path("name").textValue();
    switch (json.get("what").textValue()) {
      case "create_tag":
        table.createTag(name, json.get("snapshot").longValue());
        break;
      case "automatic_tags":
        table.newTagAutoManager().run();
        break;
      case "rename_tag":
        table.renameTag(name, json.get("to").textValue());
        break;
      case "delete_tag":
        table.deleteTag(name);
        break;
      case "create_branch":
        table.createBranch(name, json.get("tag").textValue());
        break;
      case "delete_branch":
        table.deleteBranch(name);
        break;
      case "fast_forward":
        table.fastForward(name);
        break;
      case "rollback":
        table.rollbackTo(json.get("snapshot").longValue());
        break;
      default:
        throw new IllegalArgumentException("no such change: " + json);
    }
  }

  /** The names of all options of tables, their other names among them. */
  static List<String> options() throws IllegalAccessException {
    List<String> names = new ArrayList<>();
    for (Class<?> group : List.of(CoreOptions.class, OrcOptions.class, IcebergOptions.class)) {
      for (Field field : group.getFields()) {
        if (Modifier.isStatic(field.getModifiers())
            && field.get(null) instanceof ConfigOption<?> option) {
          names.add(option.key());
          option.fallbackKeys().forEach(other -> names.add(other.getKey()));
        }
      }
    }
    return names;
  }
}
