package io.lockgate.spark.write;

import org.apache.spark.sql.connector.write.WriterCommitMessage;

/** The files of one task: a JSON array of the messages of write.commit. */
public record FilesWritten(String json) implements WriterCommitMessage {}
