package io.lockgate.spark.messages;

/** A request that may hold a grant, in whose session it is asked. */
public interface Granted {
  String grant();
}
