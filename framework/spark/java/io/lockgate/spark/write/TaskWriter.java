package io.lockgate.spark.write;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lockgate.spark.bridge.Values;
import io.lockgate.spark.files.BucketHash;
import io.lockgate.spark.files.PartitionPaths;
import io.lockgate.spark.index.KeyCollector;
import io.lockgate.spark.index.KeyPlan;
import io.lockgate.spark.index.KeyUpload;
import io.lockgate.spark.messages.Message;
import io.lockgate.spark.messages.Messages;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.types.DataType;

/**
 * Writes the rows of one task, in the order of the table's columns, into files of their own until
 * commit or abort.
 */
public abstract class TaskWriter implements DataWriter<InternalRow> {
  /** The files of one task: a JSON array of the messages of write.commit. */
  public record FilesWritten(String json) implements WriterCommitMessage {
    public List<Message> messages() {
      return Messages.readAll(json, Message.class);
    }
  }

  private final WriteSpec spec;
  private final Configuration conf;
  private final BucketHash hash;
  private final String attempt;
  private final KeyUpload sentKeys;
  private final List<Path> paths = new ArrayList<>();
  private final List<DataFileWriter> unfinished = new ArrayList<>();
  private final ArrayNode messages = JsonNodeFactory.instance.arrayNode();

  TaskWriter(WriteSpec spec, Configuration conf, String attempt) throws IOException {
    KeyPlan plan = spec.indexKeys();
    this.sentKeys =
        plan == null
            ? null
            : new KeyUpload(plan, FileOutput.raw(new Path(plan.folder()).getFileSystem(conf)));
    this.spec = spec;
    this.conf = conf;
    this.attempt = attempt;
    DataType[] types = new DataType[spec.bucketKey().length];
    for (int i = 0; i < types.length; i++) {
      types[i] = spec.fields().get(spec.bucketKey()[i]).type();
    }
    this.hash = new BucketHash(spec.bucketKey(), types);
  }

  /** Writes a row that takes the place of another. */
  public void update(InternalRow row) throws IOException {
    write(row);
  }

  /**
   * Deletes the row of a key; of the row, which has the table's columns, only the key and what says
   * how new it is are set.
   */
  public abstract void delete(InternalRow row) throws IOException;

  /** Closes all files that are being written and describes them by {@link #finish}. */
  abstract void finishAll() throws IOException;

  WriteSpec spec() {
    return spec;
  }

  int bucket(InternalRow row) {
    return spec.buckets() > 0 ? hash.bucket(row, spec.buckets()) : 0;
  }

  /** One partition's bucket: the values of its partition columns, its number, its folder. */
  record Bucket(ObjectNode partition, int number, String folder) {}

  Bucket describe(InternalRow row, int offset, int number) {
    ObjectNode values = JsonNodeFactory.instance.objectNode();
    StringBuilder folder = new StringBuilder();
    for (int ordinal : spec.partition()) {
      WriteSpec.Field field = spec.fields().get(ordinal);
      values.set(field.name(), Values.toJson(row, offset + ordinal, field.type()));
      folder
          .append(
              PartitionPaths.folder(
                  field.name(),
                  values.get(field.name()),
                  field.type(),
                  field.precision(),
                  spec.partitionDefaultName(),
                  spec.partitionLegacyName()))
          .append('/');
    }
    return new Bucket(values, number, folder.append("bucket-").append(number).toString());
  }

  DataFileWriter open(Bucket bucket) throws IOException {
    return open(bucket, "data-", sentKeys == null ? null : spec.indexKeys().collector());
  }

  /** Opens a file with the rows of a bucket as they came. */
  DataFileWriter openChangelog(Bucket bucket) throws IOException {
    return open(bucket, "changelog-", null);
  }

  private DataFileWriter open(Bucket bucket, String prefix, KeyCollector keys) throws IOException {
    // An aborted job is cleaned up by the id of the write, which every name starts with.
    // Not new Path(parent, child): a folder may hold characters that a relative URI may not.
    Path path =
        new Path(
            spec.location()
                + "/"
                + bucket.folder()
                + "/"
                + prefix
                + attempt
                + "-"
                + paths.size()
                + "."
                + spec.format());
    paths.add(path);
    DataFileWriter file = new DataFileWriter(spec, conf, path, keys);
    unfinished.add(file);
    return file;
  }

  void finish(Bucket bucket, DataFileWriter file) throws IOException {
    describe(bucket, file, false);
  }

  void finishChangelog(Bucket bucket, DataFileWriter file) throws IOException {
    describe(bucket, file, true);
  }

  private void describe(Bucket bucket, DataFileWriter file, boolean changelog) throws IOException {
    ObjectNode message = messages.addObject();
    message.set("partition", bucket.partition());
    message.put("bucket", bucket.number()).put("total_buckets", spec.buckets());
    message.put("changelog", changelog);
    ObjectNode described = file.finish();
    unfinished.remove(file);
    message.set("file", described);
    message.set(
        "index_keys",
        sentKeys == null
            ? JsonNodeFactory.instance.nullNode()
            : sentKeys.send(described.get("name").asText(), file.keys()));
  }

  @Override
  public FilesWritten commit() throws IOException {
    finishAll();
    return new FilesWritten(messages.toString());
  }

  @Override
  public void abort() throws IOException {
    for (DataFileWriter file : unfinished) {
      file.discard();
    }
    unfinished.clear();
    for (Path path : paths) {
      FileOutput.raw(path.getFileSystem(conf)).delete(path, false);
    }
    if (sentKeys != null) {
      sentKeys.abort();
    }
  }

  @Override
  public void close() throws IOException {}
}
