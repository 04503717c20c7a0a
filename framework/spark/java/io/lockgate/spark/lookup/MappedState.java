package io.lockgate.spark.lookup;

import com.fasterxml.jackson.databind.JsonNode;
import io.lockgate.spark.bridge.Bridge;
import java.io.IOException;
import java.nio.file.Path;

/** A state in mapped files: layers, the newest of which that knows a key has its value. */
final class MappedState implements CacheState {
  private final CacheLayer[] newestFirst;

  MappedState(Path folder) throws IOException {
    JsonNode content = Bridge.JSON.readTree(folder.resolve("LAYERS.json").toFile());
    JsonNode names = content.get("layers");
    JsonNode sizes = content.get("bytes");
    if (names == null) {
      throw new IOException("LAYERS.json names no layers");
    }
    newestFirst = new CacheLayer[names.size()];
    for (int i = 0; i < newestFirst.length; i++) {
      String name = names.get(newestFirst.length - 1 - i).asText();
      newestFirst[i] = new CacheLayer(folder, name);
      JsonNode size = sizes == null ? null : sizes.get(name);
      if (size != null && size.longValue() != newestFirst[i].bytes()) {
        throw new IOException("a file of layer " + name + " was cut");
      }
    }
  }

  @Override
  public boolean find(KeyEncoder key, Value out) {
    for (CacheLayer layer : newestFirst) {
      if (layer.find(key, out)) {
        return out.offset != 0;
      }
    }
    return false;
  }

  @Override
  public void close() {
    for (CacheLayer layer : newestFirst) {
      layer.close();
    }
  }
}
