package io.lockgate.spark.lookup;

import com.fasterxml.jackson.databind.JsonNode;
import io.lockgate.spark.bridge.Bridge;
import java.io.IOException;
import java.nio.file.Path;

/**
 * The content of the file {@link #FILE} of a state: the fingerprint of its snapshot, and how rows
 * are stored. The file is there if a state is complete.
 */
record StateInfo(String fingerprint, String storage) {
  static final String FILE = "GENERATION.json";

  /** Reads the file of a state; IOException if there is none, or it lacks something. */
  static StateInfo read(Path folder) throws IOException {
    Path file = folder.resolve(FILE);
    JsonNode info = Bridge.JSON.readTree(file.toFile());
    // A state that was built before there was a choice says nothing of its storage.
    String storage = info.has("storage") ? text(info, "storage", file) : "full";
    return new StateInfo(text(info, "fingerprint", file), storage);
  }

  /** Returns a text in a file of a cache; IOException, with advice, if it is not there. */
  static String text(JsonNode content, String name, Path file) throws IOException {
    JsonNode found = content.get(name);
    if (found == null || !found.isTextual()) {
      throw new IOException(
          file
              + " has no '"
              + name
              + "': it is damaged or of another version; lockgate lookup rebuild builds the cache"
              + " again");
    }
    return found.textValue();
  }
}
