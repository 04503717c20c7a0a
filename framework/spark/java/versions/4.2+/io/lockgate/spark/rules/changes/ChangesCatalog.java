package io.lockgate.spark.rules.changes;

import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.catalog.LockgateTable;
import io.lockgate.spark.messages.RangeEnd;
import io.lockgate.spark.messages.RangeRequest;
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
    ChangelogRange range = context.range();
    RangeEnd start = new RangeEnd(null, null, true);
    RangeEnd end = start;
    if (range instanceof ChangelogRange.VersionRange versions) {
      String first = versions.startingVersion();
      start = new RangeEnd(first, null, versions.startingBoundInclusive());
      String last = versions.endingVersion().orElse(null);
      end = new RangeEnd(last, null, versions.endingBoundInclusive());
    } else if (range instanceof ChangelogRange.TimestampRange times) {
      start = new RangeEnd(null, times.startingTimestamp(), times.startingBoundInclusive());
      Long last = times.endingTimestamp().orElse(null);
      end = new RangeEnd(null, last, times.endingBoundInclusive());
    }
    boolean raw = context.deduplicationMode() == ChangelogContext.DeduplicationMode.NONE;
    return TableFeed.of(followed, new RangeRequest(followed.request(), raw, start, end));
  }
}
