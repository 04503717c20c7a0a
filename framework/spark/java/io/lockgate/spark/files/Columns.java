package io.lockgate.spark.files;

import io.lockgate.spark.files.batches.StoredType;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.LongUnaryOperator;
import org.apache.hadoop.hive.ql.exec.vector.BytesColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.ColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.Decimal64ColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.DecimalColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.DoubleColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.ListColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.LongColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.MapColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.StructColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.TimestampColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.VectorizedRowBatch;
import org.apache.orc.TypeDescription;
import org.apache.orc.TypeDescription.Category;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;

/**
 * The columns of a file that hold the wanted columns, and how their values are seen.
 *
 * <p>A column is found by its field id (attribute {@code paimon.id}, or the schema the file was
 * written with), and by name where a file has neither. A file without the column yields nulls.
 */
public final class Columns {
  public static final String FIELD_ID = "paimon.id";
  static final String SPARK_TYPE = "spark.sql.catalyst.type";

  /**
   * A wanted column: its name in the table, its field id (or null), its type, and the field ids of
   * the columns inside it by their paths, joined by {@link #SEPARATOR}.
   */
  public record Wanted(String name, Integer id, DataType type, Map<String, Integer> inside) {
    public Wanted(String name, Integer id, DataType type) {
      this(name, id, type, Map.of());
    }
  }

  public static final String SEPARATOR = StoredType.SEPARATOR;

  /**
   * What precedes the name of a key's own column; a file in "thin mode" has keys as values only.
   */
  public static final String KEY_PREFIX = "_KEY_";

  private final TypeDescription readType = TypeDescription.createStruct();
  private final List<Wanted> wanted;
  private final TypeDescription[] inFile;
  private final int[] places;
  private final Map<String, String> fileNames = new HashMap<>();
  private final Map<Integer, String> namesAtWriting;
  private boolean localTimestamps;
  private boolean wallClocks;

  private Columns(List<Wanted> wanted, Map<Integer, String> namesAtWriting) {
    this.wanted = wanted;
    this.namesAtWriting = namesAtWriting;
    this.inFile = new TypeDescription[wanted.size()];
    this.places = new int[wanted.size()];
  }

  public static Columns map(
      TypeDescription file, List<Wanted> wanted, Map<Integer, String> namesAtWriting) {
    Columns columns = new Columns(wanted, namesAtWriting);
    Map<Integer, String> ids = ids(file);
    for (int i = 0; i < columns.inFile.length; i++) {
      Wanted column = wanted.get(i);
      String name = fileName(column, file, ids, namesAtWriting);
      if (name == null) {
        continue;
      }
      TypeDescription found = file.getChildren().get(file.getFieldNames().indexOf(name));
      columns.inFile[i] = found;
      columns.fileNames.put(column.name(), name);
      // The same column may be wanted twice, as a key and as a value: it is read once.
      int before = columns.readType.getFieldNames().indexOf(name);
      columns.places[i] = before < 0 ? columns.readType.getFieldNames().size() : before;
      if (before < 0) {
        columns.readType.addField(name, columns.readType(column.type(), found, column, ""));
      }
    }
    return columns;
  }

  private static Map<Integer, String> ids(TypeDescription file) {
    Map<Integer, String> ids = new HashMap<>();
    List<TypeDescription> children = file.getChildren();
    for (int i = 0; i < children.size(); i++) {
      String id = children.get(i).getAttributeValue(FIELD_ID);
      if (id != null) {
        ids.put(Integer.valueOf(id), file.getFieldNames().get(i));
      }
    }
    return ids;
  }

  private static String fileName(
      Wanted column,
      TypeDescription file,
      Map<Integer, String> ids,
      Map<Integer, String> atWriting) {
    List<String> names = file.getFieldNames();
    if (column.id() != null && !ids.isEmpty()) {
      return ids.get(column.id());
    }
    String name =
        column.id() != null && atWriting != null ? atWriting.get(column.id()) : column.name();
    if (name == null || names.contains(name)) {
      return name;
    }
    if (name.startsWith(KEY_PREFIX) && names.contains(name.substring(KEY_PREFIX.length()))) {
      return name.substring(KEY_PREFIX.length());
    }
    // A table that Spark or Hive wrote may differ in case only.
    return names.stream().filter(name::equalsIgnoreCase).findFirst().orElse(null);
  }

  /**
   * The type to ask ORC for: the file's own where its vectors serve, else the wanted one, which ORC
   * then converts to.
   */
  private TypeDescription readType(
      DataType want, TypeDescription file, Wanted column, String path) {
    Category category = file.getCategory();
    if (want instanceof StructType struct && category == Category.STRUCT) {
      TypeDescription type = TypeDescription.createStruct();
      for (StructField field : struct.fields()) {
        String inner = path + SEPARATOR + field.name();
        int at = inside(file, field.name(), column, inner);
        if (at >= 0) {
          type.addField(
              file.getFieldNames().get(at),
              readType(field.dataType(), file.getChildren().get(at), column, inner));
        }
      }
      return type;
    } else if (want instanceof ArrayType array && category == Category.LIST) {
      return TypeDescription.createList(
          readType(
              array.elementType(),
              file.getChildren().get(0),
              column,
              path + SEPARATOR + "element"));
    } else if (want instanceof MapType map && category == Category.MAP) {
      return TypeDescription.createMap(
          readType(map.keyType(), file.getChildren().get(0), column, path + SEPARATOR + "key"),
          readType(map.valueType(), file.getChildren().get(1), column, path + SEPARATOR + "value"));
    } else if (want instanceof TimestampType || want instanceof TimestampNTZType) {
      return timestampType(want, file, column.name() + path.replace(SEPARATOR, "."));
    } else if (want instanceof StringType && isText(category)) {
      return file.clone();
    }
    TypeDescription type = OrcTypes.toOrc(want);
    boolean asIs = type.getCategory() == category && type.equals(file, false);
    return asIs || path.isEmpty() && NarrowedTypes.castFrom(file, want) != null
        ? file.clone()
        : type;
  }

  /**
   * The place of a struct's field in the file's struct: by its id, or by its name where there are
   * no ids; below 0 for none.
   */
  private int inside(TypeDescription file, String name, Wanted column, String path) {
    Integer id = column.inside().get(path);
    if (id == null) {
      return file.getFieldNames().indexOf(name);
    }
    Map<Integer, String> ids = ids(file);
    String stored =
        !ids.isEmpty() ? ids.get(id) : namesAtWriting == null ? name : namesAtWriting.get(id);
    return stored == null ? -1 : file.getFieldNames().indexOf(stored);
  }

  private TypeDescription timestampType(DataType want, TypeDescription file, String path) {
    Category category = file.getCategory();
    if (category == Category.TIMESTAMP_INSTANT) {
      return TypeDescription.createTimestampInstant();
    } else if (category == Category.TIMESTAMP) {
      localTimestamps |= want instanceof TimestampType;
      wallClocks |= want instanceof TimestampNTZType;
      return TypeDescription.createTimestamp();
    } else if (category == Category.LONG && file.getAttributeValue(SPARK_TYPE) != null) {
      return TypeDescription.createLong();
    }
    throw new IllegalArgumentException(
        "column " + path + ": a file's " + file + " cannot be read as " + want.sql());
  }

  private static boolean isText(Category category) {
    return category == Category.STRING || category == Category.VARCHAR || category == Category.CHAR;
  }

  /**
   * The struct to read, with the file's names, in the order wanted; absent columns are left out.
   */
  public TypeDescription readType() {
    return readType;
  }

  /** The column's name in the file, or null where the file has none. */
  public String fileName(String column) {
    return fileNames.get(column);
  }

  /** The file's type of a wanted column, by its name in the table, or null. */
  public TypeDescription fileType(String column) {
    for (int i = 0; i < inFile.length; i++) {
      if (wanted.get(i).name().equals(column)) {
        return inFile[i];
      }
    }
    return null;
  }

  /** The file's type of a wanted column, or null. */
  public TypeDescription fileType(int column) {
    return inFile[column];
  }

  /**
   * The type of a wanted column's view if its values are to be cast to the wanted type, since not
   * all may fit; else null.
   */
  public DataType castFrom(int column) {
    return inFile[column] == null
        ? null
        : NarrowedTypes.castFrom(inFile[column], wanted.get(column).type());
  }

  /** Tells whether values of a column, by its name in the table, are cast after they are read. */
  public boolean isCast(String column) {
    for (int i = 0; i < inFile.length; i++) {
      if (wanted.get(i).name().equals(column)) {
        return castFrom(i) != null;
      }
    }
    return false;
  }

  /** The wanted type of a column. */
  public DataType type(int column) {
    return wanted.get(column).type();
  }

  public int size() {
    return inFile.length;
  }

  /**
   * Tells whether an instant is wanted where the file has a wall clock, as Spark writes its
   * TIMESTAMP.
   */
  public boolean localTimestamps() {
    return localTimestamps;
  }

  /**
   * Tells whether a wall clock is wanted where the file has one, as Paimon writes TIMESTAMP_NTZ.
   */
  public boolean wallClocks() {
    return wallClocks;
  }

  /**
   * Vectors for rows of {@link #readType()}; short decimals that need no conversion are read as the
   * numbers that they are.
   */
  public VectorizedRowBatch createBatch(int rows) {
    VectorizedRowBatch batch = readType.createRowBatch(rows);
    for (int i = 0; i < inFile.length; i++) {
      TypeDescription file = inFile[i];
      int at = places[i];
      if (file != null
          && isShortDecimal(file)
          && file.equals(readType.getChildren().get(at), false)) {
        batch.cols[at] = new Decimal64ColumnVector(rows, file.getPrecision(), file.getScale());
      }
    }
    return batch;
  }

  private static boolean isShortDecimal(TypeDescription type) {
    return type.getCategory() == Category.DECIMAL
        && type.getPrecision() <= TypeDescription.MAX_DECIMAL64_PRECISION;
  }

  /**
   * Views over a batch of {@link #createBatch}; {@code toInstant} turns the writer's wall clock
   * into an instant.
   */
  public Vectors.View[] views(ColumnVector[] vectors, LongUnaryOperator toInstant) {
    List<Vectors.View> views = new ArrayList<>();
    for (int i = 0; i < inFile.length; i++) {
      Wanted column = wanted.get(i);
      DataType stored = castFrom(i);
      views.add(
          inFile[i] == null
              ? new Vectors.Missing(column.type())
              : view(
                  stored == null ? column.type() : stored,
                  inFile[i],
                  vectors[places[i]],
                  new Location(column, "", toInstant)));
    }
    return views.toArray(Vectors.View[]::new);
  }

  /**
   * A view's position in a wanted column, and the function that turns its wall clocks into
   * instants.
   */
  private record Location(Wanted column, String path, LongUnaryOperator toInstant) {
    Location in(String part) {
      return new Location(column, path + SEPARATOR + part, toInstant);
    }
  }

  private Vectors.View view(
      DataType type, TypeDescription file, ColumnVector vector, Location location) {
    if (vector instanceof TimestampColumnVector timestamps) {
      boolean adjust = type instanceof TimestampType && file.getCategory() == Category.TIMESTAMP;
      return new Vectors.Timestamps(type, timestamps, adjust ? location.toInstant() : null);
    } else if (vector instanceof Decimal64ColumnVector decimals) {
      return new Vectors.ShortDecimals(type, decimals);
    } else if (vector instanceof LongColumnVector longs) {
      return new Vectors.Longs(type, longs);
    } else if (vector instanceof DoubleColumnVector doubles) {
      return new Vectors.Doubles(type, doubles, file.getCategory());
    } else if (vector instanceof BytesColumnVector bytes) {
      boolean isChar = file.getCategory() == Category.CHAR;
      return isChar
          ? new Vectors.Chars(type, bytes, file.getMaxLength())
          : new Vectors.Bytes(type, bytes);
    } else if (vector instanceof DecimalColumnVector decimals) {
      return new Vectors.Decimals(type, decimals);
    } else if (vector instanceof ListColumnVector list) {
      DataType element = ((ArrayType) type).elementType();
      return new Vectors.Lists(
          type, list, view(element, file.getChildren().get(0), list.child, location.in("element")));
    } else if (vector instanceof MapColumnVector map) {
      MapType mapType = (MapType) type;
      return new Vectors.Maps(
          type,
          map,
          view(mapType.keyType(), file.getChildren().get(0), map.keys, location.in("key")),
          view(mapType.valueType(), file.getChildren().get(1), map.values, location.in("value")));
    }
    return structView((StructType) type, file, (StructColumnVector) vector, location);
  }

  private Vectors.View structView(
      StructType type, TypeDescription file, StructColumnVector vector, Location location) {
    List<Vectors.View> children = new ArrayList<>();
    int next = 0;
    for (StructField field : type.fields()) {
      Location inner = location.in(field.name());
      int at = inside(file, field.name(), location.column(), inner.path());
      children.add(
          at < 0
              ? new Vectors.Missing(field.dataType())
              : view(field.dataType(), file.getChildren().get(at), vector.fields[next++], inner));
    }
    return new Vectors.Structs(type, vector, children.toArray(Vectors.View[]::new));
  }
}
