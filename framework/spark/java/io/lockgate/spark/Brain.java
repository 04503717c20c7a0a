package io.lockgate.spark;

/** The whole contract of Java with Python: one operation, JSON in, JSON out. Python implements it. */
public interface Brain {
  String call(String operation, String request);
}
