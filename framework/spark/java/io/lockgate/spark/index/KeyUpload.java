package io.lockgate.spark.index;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.OutputStream;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import org.apache.hadoop.fs.FSError;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Sends the keys of a task's files to the driver: in messages as far as they fit, else in files.
 */
public final class KeyUpload {
  private static final Logger LOG = LoggerFactory.getLogger(KeyUpload.class);
  private static final String DATA = "data-";
  private static final String KEYS = "keys-";

  private final KeyPlan plan;
  private final FileSystem files;
  private final List<Path> written = new ArrayList<>();
  private long inlineLeft;

  public KeyUpload(KeyPlan plan, FileSystem files) {
    this.plan = plan;
    this.files = files;
    this.inlineLeft = plan.inlineBytes();
  }

  /** Sends the keys of a data file, if there are some; answers its message's part about them. */
  public JsonNode send(String file, byte[] keys) {
    if (keys == null) {
      return JsonNodeFactory.instance.nullNode();
    }
    ObjectNode sent = JsonNodeFactory.instance.objectNode();
    if (keys.length <= inlineLeft) {
      inlineLeft -= keys.length;
      return sent.put("inline", Base64.getEncoder().encodeToString(keys));
    }
    // The driver finds it by the name of the data file.
    Path path = new Path(plan.folder() + "/" + KEYS + file.substring(DATA.length()));
    written.add(path);
    try (OutputStream out = files.create(path, false)) {
      out.write(keys);
    } catch (IOException | FSError failure) {
      LOG.warn(
          "the driver reads the indexed columns of {}: its keys cannot be written", file, failure);
      discard(path);
      return JsonNodeFactory.instance.nullNode();
    }
    return sent.putNull("inline");
  }

  private void discard(Path path) {
    try {
      files.delete(path, false);
    } catch (IOException ignored) {
      // Nobody looks for it; it goes with other orphans.
    }
  }

  /** Deletes what was sent in files. */
  public void abort() throws IOException {
    for (Path path : written) {
      files.delete(path, false);
    }
  }
}
