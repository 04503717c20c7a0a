package io.lockgate.spark;

import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.scan.TableAddress;
import java.util.Map;
import java.util.Optional;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogV2Util$;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.SupportsCatalogOptions;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * {@code format("lockgate")}: a table by its name, as {@code lake.db.t}, or by its folder in the
 * warehouse of a catalog. It is the catalog's table, with its rights and options.
 */
public final class LockgateSource implements SupportsCatalogOptions, DataSourceRegister {
  @Override
  public String shortName() {
    return "lockgate";
  }

  @Override
  public String extractCatalog(CaseInsensitiveStringMap options) {
    return TableAddress.of(options).catalog();
  }

  @Override
  public Identifier extractIdentifier(CaseInsensitiveStringMap options) {
    return TableAddress.of(options).identifier();
  }

  @Override
  public Optional<String> extractTimeTravelVersion(CaseInsensitiveStringMap options) {
    return Optional.ofNullable(options.get("versionAsOf"));
  }

  @Override
  public Optional<String> extractTimeTravelTimestamp(CaseInsensitiveStringMap options) {
    return Optional.ofNullable(options.get("timestampAsOf"));
  }

  @Override
  public StructType inferSchema(CaseInsensitiveStringMap options) {
    return CatalogV2Util$.MODULE$.v2ColumnsToStructType(table(options).columns());
  }

  /** For streams, which Spark does not read by the catalog. */
  @Override
  public Table getTable(StructType schema, Transform[] parts, Map<String, String> properties) {
    return table(new CaseInsensitiveStringMap(properties));
  }

  private static Table table(CaseInsensitiveStringMap options) {
    TableAddress named = TableAddress.of(options);
    SparkSession session = SparkSession.active();
    TableCatalog catalog =
        (TableCatalog) session.sessionState().catalogManager().catalog(named.catalog());
    try {
      return catalog.loadTable(named.identifier());
    } catch (NoSuchTableException missing) {
      throw Bridge.failure(missing.getMessage());
    }
  }
}
