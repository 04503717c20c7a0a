package io.lockgate.spark.messages;

import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** What the constructors of messages check, and the copies that they keep of collections. */
final class Checks {
  private Checks() {}

  static void required(Object value, String key, String kind) {
    if (value == null) {
      throw new KeyFault(key, "is not " + Faults.withArticle(kind));
    }
  }

  static void fixed(String value, String key, String text) {
    if (!text.equals(value)) {
      throw new KeyFault(key, "is not '" + text + "'");
    }
  }

  /** Refuses null as an element of a collection whose elements may hold null themselves. */
  static void elements(Collection<?> elements, String path) {
    if (elements.contains(null)) {
      throw new KeyFault(path, "is null");
    }
  }

  static <T> List<T> copy(List<T> list) {
    return list == null ? null : Collections.unmodifiableList(new ArrayList<>(list));
  }

  /** Keeps the order of keys. */
  static <T> Map<String, T> copy(Map<String, T> map) {
    return map == null ? null : Collections.unmodifiableMap(new LinkedHashMap<>(map));
  }
}
