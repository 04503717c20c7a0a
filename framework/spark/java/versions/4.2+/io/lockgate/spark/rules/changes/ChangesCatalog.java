package io.lockgate.spark.rules.changes;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.catalog.LockgateTable;
import java.util.Optional;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.connector.catalog.Changelog;
import org.apache.spark.sql.connector.catalog.ChangelogContext;
import org.apache.spark.sql.connector.catalog.ChangelogRange;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A catalog whose tables can be asked for their changes: {@code SELECT ... CHANGES FROM ...}. */
public abstract class ChangesCatalog implements TableCatalog {
  @Override
  public Changelog loadChangelog(
      Identifier identifier, ChangelogContext context, CaseInsensitiveStringMap options)
      throws NoSuchTableException {
    Table table = loadTable(identifier);
    if (!(table instanceof LockgateTable followed) || followed.view() != null) {
      throw Bridge.failure(table.name() + " is a system table, which has no changes of its own");
    }
    ObjectNode request = followed.request();
    request.put("raw", context.deduplicationMode() == ChangelogContext.DeduplicationMode.NONE);
    ObjectNode start = request.putObject("start");
    ObjectNode end = request.putObject("end");
    ChangelogRange range = context.range();
    if (range instanceof ChangelogRange.VersionRange versions) {
      of(start, Optional.of(versions.startingVersion()), null, versions.startingBoundInclusive());
      of(end, versions.endingVersion(), null, versions.endingBoundInclusive());
    } else if (range instanceof ChangelogRange.TimestampRange times) {
      of(start, Optional.empty(), times.startingTimestamp(), times.startingBoundInclusive());
      of(end, Optional.empty(), times.endingTimestamp().orElse(null), times.endingBoundInclusive());
    } else {
      of(start, Optional.empty(), null, true);
      of(end, Optional.empty(), null, true);
    }
    return TableFeed.of(followed, request);
  }

  private static void of(ObjectNode end, Optional<String> version, Long micros, boolean inclusive) {
    end.put("version", version.orElse(null)).put("micros", micros).put("inclusive", inclusive);
  }
}
