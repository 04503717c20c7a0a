package io.lockgate.ranger;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * Names of databases, tables and columns, from the folders of a warehouse of Apache Paimon.
 *
 * <p>A name that somebody typed never becomes a part of a path: folders are found by listing, so
 * that no name leads out of the warehouse.
 */
final class WarehouseNames {
  private static final String DATABASE = ".db";
  private static final String SCHEMA = "schema-";
  private static final ObjectMapper JSON = new ObjectMapper();

  private final FileSystem files;
  private final Path root;

  /** Opens a warehouse by its address; `confs` are those of its file system, as `fs.s3a.*`. */
  WarehouseNames(String warehouse, Map<String, String> confs) throws IOException {
    Configuration configuration = new Configuration();
    confs.forEach(configuration::set);
    root = new Path(warehouse);
    files = root.getFileSystem(configuration);
  }

  /** Fails with an IOException unless the warehouse is a folder that can be listed. */
  void check() throws IOException {
    if (!files.getFileStatus(root).isDirectory()) {
      throw new IOException(root + " is no folder");
    }
    files.listStatus(root);
  }

  /** Returns the databases of the warehouse, in order. */
  List<String> databases() throws IOException {
    List<String> found = new ArrayList<>();
    for (FileStatus each : folders(root)) {
      String name = each.getPath().getName();
      if (name.endsWith(DATABASE) && name.length() > DATABASE.length()) {
        found.add(name.substring(0, name.length() - DATABASE.length()));
      }
    }
    Collections.sort(found);
    return found;
  }

  /** Returns the tables of a database, in order; none if there is no such database. */
  List<String> tables(String database) throws IOException {
    List<String> found = new ArrayList<>();
    if (databases().contains(database)) {
      for (FileStatus each : folders(new Path(root, database + DATABASE))) {
        if (files.exists(new Path(each.getPath(), "schema"))) {
          found.add(each.getPath().getName());
        }
      }
    }
    Collections.sort(found);
    return found;
  }

  /** Returns the columns of a table's newest schema, in order; none if there is no such table. */
  List<String> columns(String database, String table) throws IOException {
    List<String> found = new ArrayList<>();
    if (!tables(database).contains(table)) {
      return found;
    }
    Path newest = null;
    long highest = -1;
    Path schemas = new Path(new Path(new Path(root, database + DATABASE), table), "schema");
    for (FileStatus each : files.listStatus(schemas)) {
      String name = each.getPath().getName();
      if (name.matches(SCHEMA + "\\d{1,18}")) {
        long number = Long.parseLong(name.substring(SCHEMA.length()));
        if (number > highest) {
          highest = number;
          newest = each.getPath();
        }
      }
    }
    if (newest != null) {
      try (InputStream in = files.open(newest)) {
        for (JsonNode field : JSON.readTree(in).path("fields")) {
          found.add(field.path("name").asText());
        }
      }
    }
    return found;
  }

  private List<FileStatus> folders(Path parent) throws IOException {
    List<FileStatus> found = new ArrayList<>();
    try {
      for (FileStatus each : files.listStatus(parent)) {
        if (each.isDirectory()) {
          found.add(each);
        }
      }
    } catch (FileNotFoundException gone) {
      return found; // a database that was dropped a moment ago
    }
    return found;
  }
}
