package io.lockgate.spark.scan;

import com.fasterxml.jackson.databind.JsonNode;
import io.lockgate.spark.bridge.LongLists;
import io.lockgate.spark.bridge.Predicates;
import io.lockgate.spark.files.FileColumns;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.Predicate;

/**
 * The filters of a scan that are known only at run time: on its columns, and on the paths of files
 * that have rows to change; {@code files} is null where all files are read.
 */
record LateFilters(List<Predicate> predicates, Set<String> files) {
  private static final int MOST_SOUGHT = 5_000;
  static final LateFilters NONE = new LateFilters(List.of(), null);

  /** Filters on paths are told from others where whole files are written again. */
  static LateFilters of(Predicate[] offered, boolean wholeFiles) {
    List<Predicate> ofPaths =
        Arrays.stream(offered).filter(each -> wholeFiles && isOfPaths(each)).toList();
    List<Predicate> others =
        Arrays.stream(offered)
            .filter(each -> !ofPaths.contains(each))
            .map(LongLists::shortened)
            .toList();
    return new LateFilters(others, ofPaths.isEmpty() ? null : paths(ofPaths));
  }

  /** The predicates that are lists, which tasks compare rows with; longer ones are sent to none. */
  Predicate[] lists() {
    return predicates.stream()
        .filter(each -> each.name().equals("IN") && each.children().length <= MOST_SOUGHT)
        .toArray(Predicate[]::new);
  }

  private static boolean isOfPaths(Predicate predicate) {
    return predicate.name().equals("IN")
        && predicate.children()[0] instanceof NamedReference column
        && Arrays.equals(column.fieldNames(), new String[] {FileColumns.PATH});
  }

  private static Set<String> paths(List<Predicate> filters) {
    return filters.stream()
        .flatMap(filter -> Arrays.stream(filter.children()).skip(1))
        .map(path -> String.valueOf(((Literal<?>) path).value()))
        .collect(Collectors.toSet());
  }

  List<JsonNode> json() {
    return Predicates.toJson(predicates.toArray(new Predicate[0]));
  }

  /** The paths of the files to read, null for all. */
  List<String> paths() {
    return files == null ? null : List.copyOf(files);
  }
}
