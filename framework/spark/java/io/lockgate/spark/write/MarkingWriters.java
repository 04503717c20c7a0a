package io.lockgate.spark.write;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.util.Base64;
import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.DeltaWriter;
import org.apache.spark.sql.connector.write.DeltaWriterFactory;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.roaringbitmap.longlong.Roaring64NavigableMap;

/**
 * Makes the writers of tasks that append rows and note the positions of others, which the commit
 * deletes.
 */
public record MarkingWriters(Writers writers) implements DeltaWriterFactory {
  private static final ObjectMapper JSON = new ObjectMapper();
  // Of a row's id: the path of its file, and its position there.
  private static final int PATH = 0;
  private static final int POSITION = 1;

  @Override
  public DeltaWriter<InternalRow> createWriter(int partition, long task) {
    return new Marks(writers.createWriter(partition, task));
  }

  private static final class Marks implements DeltaWriter<InternalRow> {
    private final DataWriter<InternalRow> rows;
    private final Map<String, Roaring64NavigableMap> deleted = new HashMap<>();

    Marks(DataWriter<InternalRow> rows) {
      this.rows = rows;
    }

    @Override
    public void delete(InternalRow metadata, InternalRow id) {
      deleted
          .computeIfAbsent(id.getUTF8String(PATH).toString(), absent -> new Roaring64NavigableMap())
          .addLong(id.getLong(POSITION));
    }

    @Override
    public void insert(InternalRow row) throws IOException {
      rows.write(row);
    }

    @Override
    public void update(InternalRow metadata, InternalRow id, InternalRow row) throws IOException {
      delete(metadata, id);
      rows.write(row);
    }

    @Override
    public WriterCommitMessage commit() throws IOException {
      ArrayNode messages =
          (ArrayNode) JSON.readTree(((TaskWriter.FilesWritten) rows.commit()).json());
      for (Map.Entry<String, Roaring64NavigableMap> file : deleted.entrySet()) {
        messages
            .addObject()
            .put("marked", file.getKey())
            .put("positions", portable(file.getValue()));
      }
      return new TaskWriter.FilesWritten(messages.toString());
    }

    private static String portable(Roaring64NavigableMap positions) throws IOException {
      positions.runOptimize();
      ByteArrayOutputStream bytes = new ByteArrayOutputStream();
      positions.serializePortable(new DataOutputStream(bytes));
      return Base64.getEncoder().encodeToString(bytes.toByteArray());
    }

    @Override
    public void abort() throws IOException {
      rows.abort();
    }

    @Override
    public void close() throws IOException {
      rows.close();
    }
  }
}
