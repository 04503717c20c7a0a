package io.lockgate.spark.lookup;

import com.fasterxml.jackson.databind.JsonNode;
import io.lockgate.spark.bridge.Bridge;
import java.io.IOException;
import java.nio.file.Path;

/** A cache as it is at one snapshot, open for reading. */
interface CacheState extends AutoCloseable {
  /** Finds the value of a key; false if there is none. May be called by several threads. */
  boolean find(KeyEncoder key, Value out);

  @Override
  void close();

  /** Opens the state in a folder, however it is kept. */
  static CacheState open(Path generation) throws IOException {
    Path database = generation.resolve("db");
    return Info.read(generation).storage().equals("memory")
        ? new MappedState(database)
        : new RocksState(database);
  }

  /**
   * The content of the file {@link #FILE} of a state: the fingerprint of its snapshot, and the way
   * in which it is stored. The file is there if a state is complete.
   */
  record Info(String fingerprint, String storage) {
    static final String FILE = "GENERATION.json";

    /** Reads the file of a state; IOException if there is none, or it lacks something. */
    static Info read(Path folder) throws IOException {
      Path file = folder.resolve(FILE);
      JsonNode info = Bridge.JSON.readTree(file.toFile());
      // A state that was built before there was a choice says nothing of its storage.
      String storage = info.has("storage") ? text(info, "storage", file) : "full";
      return new Info(text(info, "fingerprint", file), storage);
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
}
