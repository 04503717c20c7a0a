package io.lockgate.spark.lineage;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** The datasets that a statement reads, and their columns, by numbers. */
final class Sources {
  record Column(int dataset, String name) {}

  private final Map<ObjectNode, Integer> datasets = new LinkedHashMap<>();
  private final Map<Column, Integer> numbers = new HashMap<>();
  private final List<Column> columns = new ArrayList<>();

  int dataset(ObjectNode dataset) {
    return datasets.computeIfAbsent(dataset, key -> datasets.size());
  }

  int column(int dataset, String name) {
    return numbers.computeIfAbsent(
        new Column(dataset, name),
        key -> {
          columns.add(key);
          return columns.size() - 1;
        });
  }

  Column column(int number) {
    return columns.get(number);
  }

  /** The number of a member of a struct. */
  int member(int number, String name) {
    Column of = columns.get(number);
    return column(of.dataset, of.name + "." + name);
  }

  void writeTo(ArrayNode out) {
    datasets.keySet().forEach(out::add);
  }
}
