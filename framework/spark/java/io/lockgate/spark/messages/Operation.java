package io.lockgate.spark.messages;

import com.fasterxml.jackson.core.type.TypeReference;

/** An operation of Python: its name, the type of its answer, and whether the answer may be null. */
public record Operation<Q, A>(String name, TypeReference<A> answer, boolean isNullable) {}
