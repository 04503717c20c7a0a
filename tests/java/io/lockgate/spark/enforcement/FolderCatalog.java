package io.lockgate.spark.enforcement;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.ProcedureCatalog;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.catalog.procedures.BoundProcedure;
import org.apache.spark.sql.connector.catalog.procedures.ProcedureParameter;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.execution.datasources.v2.parquet.ParquetTable;
import org.apache.spark.sql.execution.streaming.sources.RatePerMicroBatchProvider;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/**
 * A catalog of somebody else, whose tables are folders of Parquet files. Spark reads them by its
 * newer interface, which takes filters, columns, limits and aggregates. A table of the database
 * {@code rates} is a stream of 10 numbers in each batch. Its procedures make a file of their name
 * in the catalog's folder.
 */
public final class FolderCatalog implements TableCatalog, ProcedureCatalog {
  private String name;
  private String folder;

  @Override
  public void initialize(String given, CaseInsensitiveStringMap options) {
    name = given;
    folder = options.get("folder");
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public Table loadTable(Identifier ident) throws NoSuchTableException {
    if (ident.namespace().length == 1 && ident.namespace()[0].equals("rates")) {
      return new RatePerMicroBatchProvider()
          .getTable(null, new Transform[0], Map.of("rowsPerBatch", "10", "numPartitions", "2"));
    }
    Path rows = Path.of(folder, ident.name());
    if (!Files.isDirectory(rows)) {
      throw new NoSuchTableException(ident);
    }
    return new ParquetTable(
        ident.name(),
        SparkSession.active(),
        CaseInsensitiveStringMap.empty(),
        CollectionConverters.asScala(List.of(rows.toString())).toSeq(),
        Option.empty(),
        ParquetFileFormat.class);
  }

  @Override
  public Identifier[] listTables(String[] namespace) {
    return new Identifier[0];
  }

  @Override
  public Table alterTable(Identifier ident, TableChange... changes) {
    throw new UnsupportedOperationException("a folder is not altered");
  }

  @Override
  public boolean dropTable(Identifier ident) {
    return false;
  }

  @Override
  public void renameTable(Identifier from, Identifier to) {
    throw new UnsupportedOperationException("a folder is not renamed");
  }

  /** Asked for since Spark 4.1. */
  public Identifier[] listProcedures(String[] namespace) {
    return new Identifier[0];
  }

  @Override
  public UnboundProcedure loadProcedure(Identifier ident) {
    return new Trace(Path.of(folder, ident.name()));
  }

  private record Trace(Path file) implements UnboundProcedure, BoundProcedure {
    @Override
    public String name() {
      return file.getFileName().toString();
    }

    @Override
    public BoundProcedure bind(StructType inputType) {
      return this;
    }

    @Override
    public ProcedureParameter[] parameters() {
      return new ProcedureParameter[0];
    }

    @Override
    public boolean isDeterministic() {
      return false;
    }

    @Override
    public Iterator<Scan> call(InternalRow input) {
      try {
        Files.createFile(file);
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
      return Collections.emptyIterator();
    }
  }
}
