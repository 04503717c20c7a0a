package io.lockgate.spark.bridge;

/** An object that Python knows by a handle: a catalog. */
public interface PythonHandle {
  String handle();
}
