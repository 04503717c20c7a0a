package io.lockgate.spark.read;

import io.lockgate.spark.files.Columns;
import io.lockgate.spark.merge.MergeBatch;
import io.lockgate.spark.merge.MergePage;
import io.lockgate.spark.merge.MergePlan;
import io.lockgate.spark.merge.MergeRule;
import io.lockgate.spark.merge.RowAges;
import io.lockgate.spark.merge.RowMerge;
import io.lockgate.spark.merge.RowOrder;
import java.io.IOException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.ToIntFunction;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.RowOrdering;
import org.apache.spark.sql.types.ByteType$;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.LongType$;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.jdk.javaapi.CollectionConverters;
import scala.math.Ordering;

/** The rows of the files of one bucket, merged by key as the merge plan says. */
public final class MergeSource {
  public static final String KEY_PREFIX = Columns.KEY_PREFIX;
  // Paimon's SpecialFields.KEY_FIELD_ID_START: the id of a key column is this plus the id of its
  // field.
  public static final int KEY_ID_BASE = Integer.MAX_VALUE / 2;

  private MergeSource() {}

  static RowMerge open(ScanReaders readers, SplitSpec split, int batchRows) throws IOException {
    ScanSpec spec = readers.spec();
    DataType[] types = types(systemColumns(spec, null), spec.readSchema());
    OrcFileReader.Settings whole =
        new OrcFileReader.Settings(0, Long.MAX_VALUE, SearchArguments.NONE, batchRows);
    List<FileInput> inputs = new ArrayList<>();
    try {
      for (SplitSpec.DataFile file : split.files()) {
        List<Columns.Wanted> system = systemColumns(spec, spec.names(file.schemaId()));
        inputs.add(
            new FileInput(
                readers.open(file, split, whole, system),
                spec.mergePlan().key().size(),
                system.size() - 1,
                batchRows));
      }
      MergePlan plan = spec.mergePlan();
      int keys = plan.key().size();
      int before = systemColumns(spec, null).size();
      List<RowAges.Column> ages = new ArrayList<>();
      int next = keys;
      for (String name : plan.sequence()) {
        int at = isRead(spec, name) ? before + spec.readSchema().fieldIndex(name) : next++;
        ages.add(new RowAges.Column(at, types[at], plan.descending().contains(name)));
      }
      MergeBatch batch = new MergeBatch(types, before, batchRows);
      MergeRule rule = MergeRule.of(plan, types, ordinals(spec, before), batch);
      RowOrder order = RowOrder.byKey(keyOrdering(types, keys));
      return new RowMerge(inputs, order, RowAges.of(ages), rule, batch, plan.keepsAlone());
    } catch (IOException | RuntimeException failure) {
      for (FileInput input : inputs) {
        input.close();
      }
      throw failure;
    }
  }

  /**
   * Tells whether a column that rows are ordered by is among the scan's own, and so need not be
   * read twice.
   */
  private static boolean isRead(ScanSpec spec, String name) {
    return java.util.Arrays.asList(spec.readSchema().fieldNames()).contains(name);
  }

  /**
   * The columns that rows are merged by and that are not the scan's own, the kind last, as a file
   * names them whose columns had {@code names} by field id (or null).
   */
  private static List<Columns.Wanted> systemColumns(ScanSpec spec, Map<Integer, String> names) {
    List<Columns.Wanted> system = new ArrayList<>();
    for (String name : spec.mergePlan().key()) {
      String column = name.startsWith(KEY_PREFIX) ? name.substring(KEY_PREFIX.length()) : name;
      String stored = names == null ? column : names.getOrDefault(spec.fieldId(column), column);
      // No id: Paimon's writers give key columns ids of their own, others none, and all use this
      // name.
      system.add(
          new Columns.Wanted(
              KEY_PREFIX + stored, null, spec.tableSchema().apply(column).dataType()));
    }
    for (String name : spec.mergePlan().sequence()) {
      if (isRead(spec, name)) {
        continue;
      }
      system.add(
          name.equals(MergePlan.SEQUENCE_NUMBER)
              ? new Columns.Wanted(name, null, LongType$.MODULE$)
              : new Columns.Wanted(
                  name, spec.fieldId(name), spec.tableSchema().apply(name).dataType()));
    }
    for (String name : companions(spec)) {
      system.add(
          new Columns.Wanted(name, spec.fieldId(name), spec.tableSchema().apply(name).dataType()));
    }
    system.add(new Columns.Wanted(spec.mergePlan().kind(), null, ByteType$.MODULE$));
    return system;
  }

  /**
   * The columns that are merged along with the scan's own, and are neither of them nor read to
   * order rows.
   */
  private static List<String> companions(ScanSpec spec) {
    List<String> companions =
        new ArrayList<>(spec.mergePlan().companions(List.of(spec.readSchema().fieldNames())));
    companions.removeAll(spec.mergePlan().sequence());
    return companions;
  }

  /** The ordinals of value columns in the rows of a page; below 0 for those that are not read. */
  private static ToIntFunction<String> ordinals(ScanSpec spec, int before) {
    Map<String, Integer> ordinals = new HashMap<>();
    int next = spec.mergePlan().key().size();
    for (String name : spec.mergePlan().sequence()) {
      if (!isRead(spec, name)) {
        ordinals.put(name, next++);
      }
    }
    for (String name : companions(spec)) {
      ordinals.put(name, next++);
    }
    for (String name : spec.readSchema().fieldNames()) {
      if (!spec.isOfFile(name) || name.equals(spec.mergePlan().kind())) {
        ordinals.put(name, before + spec.readSchema().fieldIndex(name));
      }
    }
    return name -> ordinals.getOrDefault(name, -1);
  }

  public static Ordering<InternalRow> keyOrdering(DataType[] types, int keys) {
    return RowOrdering.createNaturalAscendingOrdering(
        CollectionConverters.asScala(List.of(types).subList(0, keys)).toSeq());
  }

  private static DataType[] types(List<Columns.Wanted> system, StructType schema) {
    List<DataType> types = new ArrayList<>();
    system.forEach(column -> types.add(column.type()));
    for (StructField field : schema.fields()) {
      types.add(field.dataType());
    }
    return types.toArray(DataType[]::new);
  }

  /** A file as a sorted input. */
  private static final class FileInput implements RowMerge.Input {
    private final DataFileReader file;
    private final int keys;
    private final int kind;
    private final int pageRows;
    private final Deque<FilePage> free = new ArrayDeque<>();

    FileInput(DataFileReader file, int keys, int kind, int pageRows) {
      this.file = file;
      this.keys = keys;
      this.kind = kind;
      this.pageRows = pageRows;
    }

    @Override
    public MergePage next() throws IOException {
      FilePage page = free.isEmpty() ? new FilePage(file.newPage(), pageRows) : free.pop();
      if (!file.fill(page.source)) {
        return null;
      }
      page.fill(page.source.rows(), keys, kind);
      return page;
    }

    @Override
    public void giveBack(MergePage page) {
      free.push((FilePage) page);
    }

    @Override
    public void close() throws IOException {
      file.close();
    }
  }

  /** A page of a file. */
  private static final class FilePage extends MergePage {
    private final DataFileReader.Page source;

    FilePage(DataFileReader.Page source, int mostRows) {
      super(source.columns(), mostRows);
      this.source = source;
    }
  }
}
