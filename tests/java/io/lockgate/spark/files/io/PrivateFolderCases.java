package io.lockgate.spark.files.io;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.file.NoSuchFileException;
import java.nio.file.NotDirectoryException;
import java.nio.file.Path;

/**
 * Does what each line of the input says, {@code verb<TAB>path}, and answers with the real path or
 * with what was wrong.
 */
public final class PrivateFolderCases {
  public static void main(String[] arguments) throws IOException {
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      String[] parts = line.split("\t");
      System.out.println(answer(parts[0], Path.of(parts[1])));
    }
  }

  private static String answer(String verb, Path path) throws IOException {
    try {
      return switch (verb) {
        case "make" -> PrivateFolders.make(path).toString();
        case "check" -> PrivateFolders.check(path).toString();
        case "own" -> PrivateFolders.checkOwn(path).toString();
        default -> {
          PrivateFolders.checkFile(path);
          yield path.toString();
        }
      };
    } catch (NoSuchFileException e) {
      return "error: missing";
    } catch (NotDirectoryException e) {
      return "error: not a folder";
    } catch (PrivateFolders.UnsafePathException e) {
      return "error: " + e.getMessage();
    }
  }
}
