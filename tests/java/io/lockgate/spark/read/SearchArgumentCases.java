package io.lockgate.spark.read;

import io.lockgate.spark.files.Columns;
import java.util.List;
import java.util.Map;
import java.util.stream.LongStream;
import org.apache.orc.TypeDescription;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.sources.In;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/** Search arguments for long lists of values. */
public final class SearchArgumentCases {
  private SearchArgumentCases() {}

  /**
   * How many values of a list are looked at for references while its search argument and the rows
   * that it leaves are made.
   */
  public static long referencesSought(int values) {
    StructType schema = new StructType().add("id", DataTypes.LongType);
    CountingIn filter = new CountingIn(LongStream.range(0, values).boxed().toArray());
    SearchArguments search = new SearchArguments(new Filter[] {filter}, schema);
    Columns columns =
        Columns.map(
            TypeDescription.fromString("struct<id:bigint>"),
            List.of(new Columns.Wanted("id", 0, DataTypes.LongType)),
            Map.of(0, "id"));
    if (search.build(columns).getLeaves().get(0).getLiteralList().size() != values
        || search.soughtRows(columns) == null) {
      throw new AssertionError("the list is not used");
    }
    return filter.sought;
  }

  private static final class CountingIn extends In {
    private static final long serialVersionUID = 1;
    private long sought;

    private CountingIn(Object[] values) {
      super("id", values);
    }

    @Override
    public String[] references() {
      sought += values().length;
      return super.references();
    }
  }
}
