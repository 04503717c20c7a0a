package io.lockgate.spark.read;

import java.io.IOException;
import org.apache.hadoop.mapreduce.InputSplit;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.parquet.hadoop.metadata.ParquetMetadata;
import org.apache.parquet.hadoop.util.HadoopInputFile;
import org.apache.parquet.io.SeekableInputStream;
import org.apache.spark.sql.execution.datasources.parquet.VectorizedParquetRecordReader;
import scala.Option;

/** The opening of a Parquet file by Spark's reader, which takes an open stream since 4.1. */
final class ParquetOpening {
  private ParquetOpening() {}

  static void open(
      VectorizedParquetRecordReader reader,
      InputSplit range,
      TaskAttemptContext task,
      HadoopInputFile input,
      SeekableInputStream stream,
      ParquetMetadata footer)
      throws IOException, InterruptedException {
    reader.initialize(range, task, Option.apply(input), Option.apply(stream), Option.apply(footer));
  }
}
