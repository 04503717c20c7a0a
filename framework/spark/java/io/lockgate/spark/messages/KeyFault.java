package io.lockgate.spark.messages;

/** A key of a message whose value is not as declared. */
final class KeyFault extends IllegalArgumentException {
  private static final long serialVersionUID = 1;

  private final String key;
  private final String fault;

  KeyFault(String key, String fault) {
    super(key + " " + fault);
    this.key = key;
    this.fault = fault;
  }

  String key() {
    return key;
  }

  String fault() {
    return fault;
  }
}
