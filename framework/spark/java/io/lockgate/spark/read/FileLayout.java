package io.lockgate.spark.read;

import io.lockgate.spark.files.Columns;
import io.lockgate.spark.files.batches.CastVector;
import io.lockgate.spark.files.batches.StoredType;
import io.lockgate.spark.files.batches.TypeChange;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.function.IntFunction;
import java.util.function.Predicate;
import org.apache.spark.sql.catalyst.util.CharVarcharUtils;
import org.apache.spark.sql.execution.vectorized.ConstantColumnVector;
import org.apache.spark.sql.types.CharType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;

/**
 * The columns wanted of a file whose format does not keep field ids for sure: they are found by the
 * names of the schema that the file was written with.
 */
final class FileLayout {
  private final List<Columns.Wanted> wanted;
  private final Map<Integer, String> names;
  private final Map<Integer, DataType> types;
  private final Function<String, Map<String, Integer>> inside;

  /**
   * Says what the schema of the writing knows of columns: their names and types by field id, and by
   * name the ids of the fields inside; {@code names} is null where the plan does not tell.
   */
  FileLayout(
      List<Columns.Wanted> wanted,
      Map<Integer, String> names,
      Map<Integer, DataType> types,
      Function<String, Map<String, Integer>> inside) {
    this.wanted = wanted;
    this.names = names;
    this.types = types;
    this.inside = inside;
  }

  static FileLayout of(List<Columns.Wanted> wanted, ScanSpec spec, long schemaId) {
    return new FileLayout(
        wanted,
        spec.names(schemaId),
        spec.types(schemaId),
        column -> spec.inside(schemaId, column));
  }

  /**
   * The columns to read of one file, each once, and how the wanted ones come from them.
   *
   * @param request the columns to read, with the types that they have in the file
   * @param ordinals for each wanted column its position in the request; -1 where the file has none
   * @param casts for each wanted column what changes its type, or null
   * @param unchanged the file's names of columns whose values may be compared as they are stored
   */
  record Stored(
      List<Columns.Wanted> wanted,
      StructType request,
      int[] ordinals,
      CastVector[] casts,
      Map<String, String> unchanged) {
    /** The wanted columns of a batch of the columns read; those without any are null. */
    ColumnVector[] columns(IntFunction<ColumnVector> read, int batchRows) {
      ColumnVector[] columns = new ColumnVector[ordinals.length];
      for (int i = 0; i < ordinals.length; i++) {
        if (ordinals[i] < 0) {
          ConstantColumnVector absent = new ConstantColumnVector(batchRows, wanted.get(i).type());
          absent.setNull();
          columns[i] = absent;
        } else {
          columns[i] = casts[i] == null ? read.apply(ordinals[i]) : casts[i].output();
        }
      }
      return columns;
    }

    /** Changes the types of the rows that were read. */
    void cast(IntFunction<ColumnVector> read, int count) {
      for (int i = 0; i < casts.length; i++) {
        if (casts[i] != null) {
          casts[i].fill(read.apply(ordinals[i]), count);
        }
      }
    }
  }

  /** Finds the columns in a file that has those {@code has} tells. */
  Stored in(Predicate<String> has, int batchRows) {
    StructType request = new StructType();
    int[] ordinals = new int[wanted.size()];
    CastVector[] casts = new CastVector[ordinals.length];
    Map<String, String> unchanged = new HashMap<>();
    Map<String, Integer> found = new HashMap<>();
    for (int i = 0; i < ordinals.length; i++) {
      Columns.Wanted column = wanted.get(i);
      String name = nameIn(has, column);
      if (name == null) {
        ordinals[i] = -1;
        continue;
      }
      StoredType written = typeIn(column);
      StoredType now = new StoredType(column.type(), column.inside(), "");
      boolean asIs = now.isPartOf(written);
      // The same column may be wanted twice, as a key and as a value: it is read once.
      Integer before = found.putIfAbsent(name, request.length());
      ordinals[i] = before == null ? request.length() : before;
      if (before == null) {
        request = request.add(name, asIs ? column.type() : written.type(), true);
      }
      if (!asIs) {
        casts[i] = new CastVector(TypeChange.of(written, now), column.type(), batchRows);
      } else if (!isPadded(column)) {
        unchanged.put(column.name(), name);
      }
    }
    return new Stored(wanted, request, ordinals, casts, unchanged);
  }

  private String nameIn(Predicate<String> has, Columns.Wanted column) {
    String name = column.id() != null && names != null ? names.get(column.id()) : column.name();
    if (name != null && !has.test(name) && name.startsWith(MergeSource.KEY_PREFIX)) {
      // A file in "thin mode" has keys among its values only.
      name = name.substring(MergeSource.KEY_PREFIX.length());
    }
    return name != null && has.test(name) ? name : null;
  }

  /** The type of a wanted column when the file was written. */
  private StoredType typeIn(Columns.Wanted column) {
    if (column.id() == null) {
      return new StoredType(column.type(), column.inside(), "");
    }
    DataType type =
        CharVarcharUtils.replaceCharVarcharWithString(
            types.getOrDefault(column.id(), column.type()));
    Map<String, Integer> ids =
        names == null ? column.inside() : inside.apply(names.get(column.id()));
    return new StoredType(type, ids, "");
  }

  /** Tells whether values of a column are padded when they are compared, but not in files. */
  private boolean isPadded(Columns.Wanted column) {
    return types.get(column.id()) instanceof CharType;
  }
}
