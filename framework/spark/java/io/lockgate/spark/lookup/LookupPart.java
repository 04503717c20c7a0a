package io.lockgate.spark.lookup;

import io.lockgate.spark.enforcement.parts.Part;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;

/** Functions of lookup joins during planning. */
public final class LookupPart implements Part {
  @Override
  public UnboundFunction function(SparkSession session, String name) {
    return OfferedLookups.find(session, name);
  }
}
