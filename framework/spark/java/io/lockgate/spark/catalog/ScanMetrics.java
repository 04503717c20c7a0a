package io.lockgate.spark.catalog;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomSumMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;

/**
 * What the planning of a scan counts, for Spark's UI; Spark makes each of these classes anew by its
 * name.
 */
public final class ScanMetrics {
  private ScanMetrics() {}

  static CustomMetric[] all() {
    return new CustomMetric[] {
      new PlanningMillis(),
      new Manifests(),
      new Files(),
      new Bytes(),
      new SkippedByPartitions(),
      new SkippedByBuckets(),
      new SkippedByKeys(),
      new SkippedByStatistics(),
      new SkippedByLimit(),
      new SkippedByOrder(),
      new AnsweredFromMetadata()
    };
  }

  /** The values that Python sends with a plan, by the names of the metrics. */
  static CustomTaskMetric[] values(JsonNode metrics) {
    List<CustomTaskMetric> out = new ArrayList<>();
    for (CustomMetric metric : all()) {
      if (metrics.has(metric.name())) {
        out.add(new Value(metric.name(), metrics.get(metric.name()).asLong()));
      }
    }
    return out.toArray(CustomTaskMetric[]::new);
  }

  private record Value(String name, long value) implements CustomTaskMetric {}

  /** How long Python took to choose the files. */
  public static final class PlanningMillis extends CustomSumMetric {
    @Override
    public String name() {
      return "planning_ms";
    }

    @Override
    public String description() {
      return "milliseconds of planning";
    }
  }

  /** The lists of files that the snapshot has. */
  public static final class Manifests extends CustomSumMetric {
    @Override
    public String name() {
      return "manifests";
    }

    @Override
    public String description() {
      return "manifests of the snapshot";
    }
  }

  /** The files to read. */
  public static final class Files extends CustomSumMetric {
    @Override
    public String name() {
      return "files";
    }

    @Override
    public String description() {
      return "files to read";
    }
  }

  /** Their size. */
  public static final class Bytes extends CustomSumMetric {
    @Override
    public String name() {
      return "bytes";
    }

    @Override
    public String description() {
      return "bytes of these files";
    }
  }

  /** Files left out by a step of the planning. */
  public abstract static class Skipped extends CustomSumMetric {
    abstract String step();

    @Override
    public String name() {
      return "skipped_by_" + step();
    }

    @Override
    public String description() {
      return "files skipped by " + step();
    }
  }

  /** By the values of partition columns. */
  public static final class SkippedByPartitions extends Skipped {
    @Override
    String step() {
      return "partitions";
    }
  }

  /** By the bucket that a key belongs to. */
  public static final class SkippedByBuckets extends Skipped {
    @Override
    String step() {
      return "buckets";
    }
  }

  /** By the range of the primary key. */
  public static final class SkippedByKeys extends Skipped {
    @Override
    String step() {
      return "keys";
    }
  }

  /** By the least and greatest values of columns. */
  public static final class SkippedByStatistics extends Skipped {
    @Override
    String step() {
      return "statistics";
    }
  }

  /** By a LIMIT that fewer files fill. */
  public static final class SkippedByLimit extends Skipped {
    @Override
    String step() {
      return "limit";
    }
  }

  /** By an ORDER BY with LIMIT whose first rows lie in others. */
  public static final class SkippedByOrder extends Skipped {
    @Override
    String step() {
      return "order";
    }
  }

  /** Files that count in an answer although none of them was opened. */
  public static final class AnsweredFromMetadata extends CustomSumMetric {
    @Override
    public String name() {
      return "answered_from_metadata";
    }

    @Override
    public String description() {
      return "files answered for from metadata";
    }
  }
}
