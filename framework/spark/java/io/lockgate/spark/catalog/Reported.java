package io.lockgate.spark.catalog;

/** A scan that Python has a report of. */
public interface Reported {
  String scanId();
}
