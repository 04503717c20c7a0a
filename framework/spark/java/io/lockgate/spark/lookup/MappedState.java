package io.lockgate.spark.lookup;

import com.fasterxml.jackson.databind.JsonNode;
import io.lockgate.spark.bridge.Bridge;
import java.io.IOException;
import java.nio.file.Path;

/** A state in mapped files: layers, the newest of which that knows a key has its value. */
final class MappedState implements CacheState {
  private final CacheLayer[] newestFirst;

  MappedState(Path folder) throws IOException {
    JsonNode names = Bridge.JSON.readTree(folder.resolve("LAYERS.json").toFile()).get("layers");
    newestFirst = new CacheLayer[names.size()];
    for (int i = 0; i < newestFirst.length; i++) {
      newestFirst[i] = new CacheLayer(folder, names.get(newestFirst.length - 1 - i).asText());
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
