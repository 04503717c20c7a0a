package io.lockgate.spark.lookup;

import io.lockgate.spark.bridge.Failure;
import java.io.IOException;
import java.nio.file.Path;
import org.apache.spark.unsafe.Platform;
import org.rocksdb.Options;
import org.rocksdb.RocksDB;
import org.rocksdb.RocksDBException;

/**
 * A state in RocksDB, as a cache is that outgrew mapped files after the join was planned. Keys are
 * asked for one by one, which is slower than the many at once of the Python workers.
 */
final class RocksState implements CacheState {
  private final Path folder;
  private final Options options;
  private final RocksDB database;

  RocksState(Path folder) throws IOException {
    this.folder = folder;
    RocksDB.loadLibrary();
    options = new Options();
    try {
      database = RocksDB.openReadOnly(options, folder.toString());
    } catch (RocksDBException e) {
      options.close();
      throw new IOException("cannot open the lookup cache " + folder + ": " + e.getMessage(), e);
    }
  }

  @Override
  public boolean find(KeyEncoder key, Value out) {
    try {
      byte[] value = database.get(key.toBytes());
      out.set(value, Platform.BYTE_ARRAY_OFFSET);
      return value != null;
    } catch (RocksDBException e) {
      throw Failure.inTask(
          "LookupCacheError: cannot read the lookup cache "
              + folder
              + ": "
              + e.getMessage()
              + "; lockgate lookup rebuild builds it again",
          e);
    }
  }

  @Override
  public void close() {
    database.close();
    options.close();
  }
}
