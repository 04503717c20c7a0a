package io.lockgate.spark.orc;

import java.io.IOException;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.write.DataWriter;

/** Writes the rows of one task. */
public abstract class OrcWriter implements DataWriter<InternalRow> {
  public abstract void delete(InternalRow key) throws IOException;
}
