package io.lockgate.spark.bridge;

/** What Python knows by a handle: a catalog. */
public interface Handled {
  String handle();
}
