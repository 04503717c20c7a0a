package io.lockgate.spark.files;

import org.apache.orc.TypeDescription;
import org.apache.orc.TypeDescription.Category;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.FractionalType;
import org.apache.spark.sql.types.NumericType;

/**
 * Numbers and texts of files as numbers of a type that may not hold them all. ORC would turn those
 * that do not fit into null, so readers must cast them instead.
 */
final class NarrowedTypes {
  private NarrowedTypes() {}

  /** The type to cast from, or null where ORC converts every value. */
  static DataType castFrom(TypeDescription file, DataType want) {
    if (!(want instanceof NumericType) || holdsAll(want, file)) {
      return null;
    }
    return switch (file.getCategory()) {
      case BYTE -> DataTypes.ByteType;
      case SHORT -> DataTypes.ShortType;
      case INT -> DataTypes.IntegerType;
      case LONG -> DataTypes.LongType;
      case FLOAT -> DataTypes.FloatType;
      case DOUBLE -> DataTypes.DoubleType;
      case DECIMAL -> new DecimalType(file.getPrecision(), file.getScale());
      case STRING, CHAR, VARCHAR -> DataTypes.StringType;
      default -> null;
    };
  }

  private static boolean holdsAll(DataType want, TypeDescription file) {
    int digits = wholeDigits(file.getCategory());
    boolean isDecimal = file.getCategory() == Category.DECIMAL;
    if (want instanceof DecimalType decimal) {
      int whole = isDecimal ? file.getPrecision() - file.getScale() : digits;
      int fraction = isDecimal ? file.getScale() : 0;
      return (isDecimal || digits > 0)
          && whole <= decimal.precision() - decimal.scale()
          && fraction <= decimal.scale();
    }
    if (want instanceof FractionalType) {
      return digits > 0
          || isDecimal
          || file.getCategory() == Category.FLOAT
          || want.equals(DataTypes.DoubleType) && file.getCategory() == Category.DOUBLE;
    }
    return digits > 0 && digits <= wholeDigits(OrcTypes.toOrc(want).getCategory());
  }

  /** The most digits of a type of whole numbers; 0 for others. */
  private static int wholeDigits(Category category) {
    return switch (category) {
      case BYTE -> 3;
      case SHORT -> 5;
      case INT -> 10;
      case LONG -> 19;
      default -> 0;
    };
  }
}
