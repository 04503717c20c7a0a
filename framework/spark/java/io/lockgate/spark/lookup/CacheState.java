package io.lockgate.spark.lookup;

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
    return StateInfo.read(generation).storage().equals("memory")
        ? new MappedState(database)
        : new RocksState(database);
  }
}
