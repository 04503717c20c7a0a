package io.lockgate.spark.merge.functions;

import io.lockgate.spark.merge.MergePlan;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.math.RoundingMode;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.ShortType;

/** Sums and products of numbers; an overflow is an error. */
public final class Numbers extends ColumnFunction {
  private final DataType type;
  private final boolean sums;

  Numbers(MergePlan.Column plan, DataType type) {
    super(plan);
    this.type = type;
    this.sums = plan.function().equals("sum");
  }

  @Override
  public Object add(Object value, Object newer) {
    if (value == null || newer == null) {
      return value == null ? newer : value;
    }
    return sums ? sum(value, newer) : product(value, newer);
  }

  @Override
  public Object addLate(Object value, Object late) {
    return add(value, late);
  }

  @Override
  public Object retract(Object value, Object gone) {
    if (gone == null || value == null && !sums) {
      return value;
    }
    return sums ? difference(value, gone) : quotient(value, gone);
  }

  private Object sum(Object left, Object right) {
    if (left instanceof Double a) {
      return a + (Double) right;
    } else if (left instanceof Float a) {
      return a + (Float) right;
    } else if (left instanceof Decimal a) {
      return fitted(a.toJavaBigDecimal().add(((Decimal) right).toJavaBigDecimal()));
    }
    long a = ((Number) left).longValue();
    long b = ((Number) right).longValue();
    long found = a + b;
    return fitted(found, ((a ^ found) & (b ^ found)) < 0);
  }

  private Object difference(Object left, Object right) {
    if (right instanceof Double b) {
      return left == null ? -b : (Double) left - b;
    } else if (right instanceof Float b) {
      return left == null ? -b : (Float) left - b;
    } else if (right instanceof Decimal b) {
      return fitted(
          left == null
              ? b.toJavaBigDecimal().negate()
              : ((Decimal) left).toJavaBigDecimal().subtract(b.toJavaBigDecimal()));
    }
    long a = left == null ? 0 : ((Number) left).longValue();
    long b = ((Number) right).longValue();
    long found = a - b;
    return fitted(found, ((a ^ b) & (a ^ found)) < 0);
  }

  private Object product(Object left, Object right) {
    if (left instanceof Double a) {
      return a * (Double) right;
    } else if (left instanceof Float a) {
      return a * (Float) right;
    } else if (left instanceof Decimal a) {
      return fitted(a.toJavaBigDecimal().multiply(((Decimal) right).toJavaBigDecimal()));
    }
    BigInteger found =
        BigInteger.valueOf(((Number) left).longValue())
            .multiply(BigInteger.valueOf(((Number) right).longValue()));
    return fitted(found.longValue(), found.bitLength() > 63);
  }

  private Object quotient(Object left, Object right) {
    if (left instanceof Double a) {
      return a / (Double) right;
    } else if (left instanceof Float a) {
      return a / (Float) right;
    }
    if (right instanceof Decimal b
        ? b.toJavaBigDecimal().signum() == 0
        : ((Number) right).longValue() == 0) {
      throw new IllegalArgumentException(
          "column '" + plan().name() + "': a row retracts 0, by which a product cannot be divided");
    }
    if (left instanceof Decimal a) {
      return fitted(
          a.toJavaBigDecimal()
              .divide(
                  ((Decimal) right).toJavaBigDecimal(),
                  ((DecimalType) type).scale(),
                  RoundingMode.HALF_UP));
    }
    long a = ((Number) left).longValue();
    long b = ((Number) right).longValue();
    return fitted(a / b, a == Long.MIN_VALUE && b == -1);
  }

  /** Returns the error that a merged value does not fit into a number of so many bits. */
  public static IllegalArgumentException tooLarge(MergePlan.Column plan, int bits) {
    return new IllegalArgumentException(
        "column '" + plan.name() + "': a merged value does not fit into " + bits + " bits");
  }

  private Object fitted(BigDecimal value) {
    DecimalType decimal = (DecimalType) type;
    BigDecimal rounded = value.setScale(decimal.scale(), RoundingMode.HALF_UP);
    if (rounded.precision() > decimal.precision()) {
      throw new IllegalArgumentException(
          "column '"
              + plan().name()
              + "': a merged value does not fit into "
              + decimal.precision()
              + " digits");
    }
    return Decimal.apply(rounded, decimal.precision(), decimal.scale());
  }

  private Object fitted(long value, boolean overflows) {
    int bits =
        type instanceof LongType
            ? 64
            : type instanceof IntegerType ? 32 : type instanceof ShortType ? 16 : 8;
    if (overflows || value != value << 64 - bits >> 64 - bits) {
      throw tooLarge(plan(), bits);
    }
    if (type instanceof LongType) {
      return value;
    } else if (type instanceof IntegerType) {
      return (int) value;
    }
    return type instanceof ByteType ? (Object) (byte) value : (Object) (short) value;
  }
}
