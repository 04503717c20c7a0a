import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import org.apache.paimon.data.BinaryString;
import org.apache.paimon.data.DataGetters;
import org.apache.paimon.data.Decimal;
import org.apache.paimon.data.GenericArray;
import org.apache.paimon.data.GenericMap;
import org.apache.paimon.data.GenericRow;
import org.apache.paimon.data.InternalArray;
import org.apache.paimon.data.InternalMap;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.data.Timestamp;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.paimon.types.ArrayType;
import org.apache.paimon.types.DataType;
import org.apache.paimon.types.DataTypeChecks;
import org.apache.paimon.types.DecimalType;
import org.apache.paimon.types.MapType;
import org.apache.paimon.types.RowType;
import org.apache.paimon.utils.InternalRowUtils;

/**
 * Values of tables as JSON and back: days, milliseconds of a day, nanoseconds since 1970 as
 * numbers, decimals as text, bytes in hexadecimal, a row as a list, a map as a list of pairs.
 */
final class Values {
  private static final BigInteger MILLION = BigInteger.valueOf(1_000_000);

  private Values() {}

  static GenericRow row(JsonNode json, RowType type) {
    GenericRow row = new GenericRow(type.getFieldCount());
    for (int index = 0; index < type.getFieldCount(); index++) {
      row.setField(index, value(json.get(index), type.getTypeAt(index)));
    }
    return row;
  }

  static Object value(JsonNode json, DataType type) {
    if (json == null || json.isNull()) {
      return null;
    }
    switch (type.getTypeRoot()) {
      case BOOLEAN:
        return json.booleanValue();
      case TINYINT:
        return (byte) json.intValue();
      case SMALLINT:
        return (short) json.intValue();
      case INTEGER:
      case DATE:
      case TIME_WITHOUT_TIME_ZONE:
        return json.intValue();
      case BIGINT:
        return json.longValue();
      case FLOAT:
        return json.isTextual()
            ? Float.valueOf(json.textValue())
            : (Float) (float) json.doubleValue();
      case DOUBLE:
        return json.isTextual() ? Double.valueOf(json.textValue()) : (Double) json.doubleValue();
      case DECIMAL:
        DecimalType decimal = (DecimalType) type;
        return Decimal.fromBigDecimal(
            new BigDecimal(json.textValue()), decimal.getPrecision(), decimal.getScale());
      case CHAR:
      case VARCHAR:
        return BinaryString.fromString(json.textValue());
      case BINARY:
      case VARBINARY:
        return HexFormat.of().parseHex(json.textValue());
      case TIMESTAMP_WITHOUT_TIME_ZONE:
      case TIMESTAMP_WITH_LOCAL_TIME_ZONE:
        return timestamp(json.bigIntegerValue());
      case ARRAY:
        DataType element = ((ArrayType) type).getElementType();
        List<Object> elements = new ArrayList<>();
        json.forEach(each -> elements.add(value(each, element)));
        return new GenericArray(elements.toArray());
      case MAP:
        MapType map = (MapType) type;
        Map<Object, Object> entries = new HashMap<>();
        json.forEach(
            pair ->
                entries.put(
                    value(pair.get(0), map.getKeyType()), value(pair.get(1), map.getValueType())));
        return new GenericMap(entries);
      case ROW:
        return row(json, (RowType) type);
      default:
        throw new IllegalArgumentException("no JSON for values of " + type);
    }
  }

  static List<Object> json(InternalRow row, RowType type) {
    List<Object> values = new ArrayList<>();
    for (int index = 0; index < type.getFieldCount(); index++) {
      values.add(json(row, index, type.getTypeAt(index)));
    }
    return values;
  }

  private static Object json(DataGetters row, int index, DataType type) {
    Object value = InternalRowUtils.get(row, index, type);
    if (value == null) {
      return null;
    }
    switch (type.getTypeRoot()) {
      case FLOAT:
      case DOUBLE:
        double number = ((Number) value).doubleValue();
        return Double.isFinite(number) ? (Object) number : Double.toString(number);
      case DECIMAL:
        return ((Decimal) value).toBigDecimal().toPlainString();
      case CHAR:
      case VARCHAR:
        return value.toString();
      case BINARY:
      case VARBINARY:
        return HexFormat.of().formatHex((byte[]) value);
      case TIMESTAMP_WITHOUT_TIME_ZONE:
      case TIMESTAMP_WITH_LOCAL_TIME_ZONE:
        return nanos((Timestamp) value);
      case ARRAY:
        return list((InternalArray) value, ((ArrayType) type).getElementType());
      case MAP:
        MapType map = (MapType) type;
        List<Object> keys = list(((InternalMap) value).keyArray(), map.getKeyType());
        List<Object> items = list(((InternalMap) value).valueArray(), map.getValueType());
        List<Object> pairs = new ArrayList<>();
        for (int pair = 0; pair < keys.size(); pair++) {
          List<Object> entry = new ArrayList<>();
          entry.add(keys.get(pair));
          entry.add(items.get(pair));
          pairs.add(entry);
        }
        return pairs;
      case ROW:
        int width = DataTypeChecks.getFieldCount(type);
        InternalRow inner = row.getRow(index, width);
        return json(inner, (RowType) type);
      default:
        return value;
    }
  }

  private static List<Object> list(InternalArray array, DataType type) {
    List<Object> values = new ArrayList<>();
    for (int index = 0; index < array.size(); index++) {
      values.add(json(array, index, type));
    }
    return values;
  }

  private static Timestamp timestamp(BigInteger nanos) {
    BigInteger rest = nanos.mod(MILLION);
    return Timestamp.fromEpochMillis(
        nanos.subtract(rest).divide(MILLION).longValueExact(), rest.intValue());
  }

  private static BigInteger nanos(Timestamp timestamp) {
    return BigInteger.valueOf(timestamp.getMillisecond())
        .multiply(MILLION)
        .add(BigInteger.valueOf(timestamp.getNanoOfMillisecond()));
  }
}
