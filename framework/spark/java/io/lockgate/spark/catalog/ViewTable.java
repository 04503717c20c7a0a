package io.lockgate.spark.catalog;

import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.bridge.Values;
import io.lockgate.spark.messages.TableRequest;
import io.lockgate.spark.messages.TableSpec;
import io.lockgate.spark.messages.ViewSpec;
import io.lockgate.spark.scan.LockgateScanBuilder;
import io.lockgate.spark.scan.RowView;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.SortOrder;
import org.apache.spark.sql.connector.expressions.aggregate.Aggregation;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.RowLevelOperationBuilder;
import org.apache.spark.sql.connector.write.RowLevelOperationInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * A system table that shows rows of a table, such as {@code t$audit_log}; it is read by a scan of
 * the table, and never written.
 */
public final class ViewTable extends LockgateTable {
  private final RowView view;
  private final StructType shown;

  public ViewTable(TableRequest request, TableSpec spec, ViewSpec shown) {
    super(request, spec);
    this.view = RowView.of(shown.suffix());
    this.shown = Values.schemaFromJson(shown.schema());
  }

  @Override
  public RowView view() {
    return view;
  }

  @Override
  public Column[] columns() {
    return Values.columns(shown);
  }

  @Override
  public MetadataColumn[] metadataColumns() {
    return new MetadataColumn[0];
  }

  @Override
  public Set<TableCapability> capabilities() {
    return view != null && view.follows()
        ? Set.of(TableCapability.BATCH_READ, TableCapability.MICRO_BATCH_READ)
        : Set.of(TableCapability.BATCH_READ);
  }

  @Override
  ScanBuilder scanBuilder(CaseInsensitiveStringMap options) {
    return view == null ? super.scanBuilder(options) : new ViewScanBuilder(options);
  }

  private RuntimeException readOnly() {
    return Bridge.failure(name() + " is a system table, which is only read");
  }

  @Override
  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    throw readOnly();
  }

  @Override
  public RowLevelOperationBuilder newRowLevelOperationBuilder(RowLevelOperationInfo info) {
    throw readOnly();
  }

  @Override
  public boolean canDeleteWhere(Predicate[] predicates) {
    throw readOnly();
  }

  @Override
  public void deleteWhere(Predicate[] predicates) {
    throw readOnly();
  }

  @Override
  public boolean dropPartitions(InternalRow[] partitions) {
    throw readOnly();
  }

  /** Offers Python those filters alone that are of the table's own columns. */
  private final class ViewScanBuilder extends LockgateScanBuilder {
    ViewScanBuilder(CaseInsensitiveStringMap options) {
      super(ViewTable.this, scanRequest(options));
      pruneColumns(shown);
    }

    @Override
    public Predicate[] pushPredicates(Predicate[] predicates) {
      List<Predicate> ours = new ArrayList<>();
      List<Predicate> remaining = new ArrayList<>();
      for (Predicate predicate : predicates) {
        (isOfTable(predicate) ? ours : remaining).add(predicate);
      }
      remaining.addAll(Arrays.asList(super.pushPredicates(ours.toArray(Predicate[]::new))));
      return remaining.toArray(Predicate[]::new);
    }

    private boolean isOfTable(Predicate predicate) {
      return Arrays.stream(predicate.references())
          .map(NamedReference::fieldNames)
          .allMatch(names -> view.isOfTable(names[0]));
    }

    @Override
    public boolean supportCompletePushDown(Aggregation wanted) {
      return false;
    }

    @Override
    public boolean pushAggregation(Aggregation wanted) {
      return false;
    }

    @Override
    public boolean pushLimit(int rows) {
      return false; // which rows are shown is known only when they are read
    }

    @Override
    public boolean pushTopN(SortOrder[] orders, int rows) {
      return false;
    }
  }
}
