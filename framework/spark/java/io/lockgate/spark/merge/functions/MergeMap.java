package io.lockgate.spark.merge.functions;

import io.lockgate.spark.merge.MergePlan;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.util.ArrayBasedMapData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Of each key of maps the newest value, or with a time field the row whose text in it is the
 * greatest.
 */
final class MergeMap extends ColumnFunction {
  private record Entry(Object key, Object value) {}

  private final DataType keys;
  private final DataType values;
  private final int time;

  MergeMap(MergePlan.Column plan, DataType type) {
    super(plan);
    this.keys = ((MapType) type).keyType();
    this.values = ((MapType) type).valueType();
    this.time = plan.function().equals("merge_map") ? -1 : timeField(plan, (StructType) values);
  }

  private static int timeField(MergePlan.Column plan, StructType row) {
    return plan.timeField() == null ? row.length() - 1 : row.fieldIndex(plan.timeField());
  }

  @Override
  public Object add(Object value, Object newer) {
    if (value == null || newer == null) {
      return value == null ? newer : value;
    }
    Map<Object, Entry> all = new LinkedHashMap<>();
    entries(value).forEach(entry -> set(all, entry));
    entries(newer)
        .forEach(
            entry -> {
              if (time < 0) {
                set(all, entry);
              } else {
                setIfLater(all, entry);
              }
            });
    return map(all.values());
  }

  private void set(Map<Object, Entry> all, Entry entry) {
    all.merge(
        Frozen.of(entry.key(), keys), entry, (before, now) -> new Entry(before.key(), now.value()));
  }

  private void setIfLater(Map<Object, Entry> all, Entry entry) {
    Object key = Frozen.of(entry.key(), keys);
    if (entry.value() == null) {
      all.remove(key);
      return;
    }
    String later = timeOf(entry.value());
    Entry previous = all.get(key);
    String before = previous == null || previous.value() == null ? null : timeOf(previous.value());
    if (later != null && (before == null || later.compareTo(before) > 0)) {
      all.put(key, entry);
    }
  }

  private String timeOf(Object row) {
    UTF8String text =
        ((InternalRow) row).isNullAt(time) ? null : ((InternalRow) row).getUTF8String(time);
    return text == null ? null : text.toString();
  }

  @Override
  public Object retract(Object value, Object gone) {
    if (time >= 0) {
      throw plan().noRetract();
    }
    if (value == null || gone == null || ((MapData) gone).numElements() == 0) {
      return value;
    }
    Map<Object, Entry> all = new LinkedHashMap<>();
    entries(value).forEach(entry -> set(all, entry));
    entries(gone).forEach(entry -> all.remove(Frozen.of(entry.key(), keys)));
    return map(all.values());
  }

  private List<Entry> entries(Object value) {
    MapData map = (MapData) value;
    List<Entry> all = new ArrayList<>();
    for (int i = 0; i < map.numElements(); i++) {
      all.add(
          new Entry(
              Frozen.element(map.keyArray(), i, keys),
              Frozen.element(map.valueArray(), i, values)));
    }
    return all;
  }

  private static ArrayBasedMapData map(Iterable<Entry> entries) {
    List<Object> keys = new ArrayList<>();
    List<Object> values = new ArrayList<>();
    for (Entry entry : entries) {
      keys.add(entry.key());
      values.add(entry.value());
    }
    return new ArrayBasedMapData(
        new GenericArrayData(keys.toArray()), new GenericArrayData(values.toArray()));
  }
}
