package io.lockgate.spark.scan;

/** A scan that Python has a report of. */
public interface Reported {
  String scanId();
}
