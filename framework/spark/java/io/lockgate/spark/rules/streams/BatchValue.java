package io.lockgate.spark.rules.streams;

import io.lockgate.spark.bridge.Values;
import io.lockgate.spark.enforcement.parts.NodeProduct;
import io.lockgate.spark.files.batches.EarlyAnswer;
import io.lockgate.spark.messages.RowsJson;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenContext;
import org.apache.spark.sql.catalyst.expressions.codegen.ExprCode;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The one value of a system table such as {@code t$pin} in a micro-batch, which was asked for when
 * the batch was analysed and is needed when it is planned.
 *
 * <p>Not a constant for the optimizer: Spark compiles constants into its code, so that it would
 * compile other code for each batch.
 */
final class BatchValue extends Expression implements NodeProduct {
  private final StructType schema;
  private final transient EarlyAnswer<RowsJson> answer;
  private final int number;
  private final String table;

  /** The {@code number}-th row of an answer; a row has one column, of {@code schema}. */
  BatchValue(StructType schema, EarlyAnswer<RowsJson> answer, int number, String table) {
    this.schema = schema;
    this.answer = answer;
    this.number = number;
    this.table = table;
  }

  /** Returns the value, as soon as it is there; throws what the question threw. */
  Literal value() {
    InternalRow row = Values.rowsFromJson(answer.get().rows(), schema)[number];
    return new Literal(row.isNullAt(0) ? null : row.get(0, dataType()), dataType());
  }

  @Override
  public DataType dataType() {
    return schema.fields()[0].dataType();
  }

  @Override
  public boolean nullable() {
    return true; // as the subquery is that it stands for
  }

  @Override
  public boolean foldable() {
    return false;
  }

  @Override
  public Object eval(InternalRow row) {
    throw unplanned();
  }

  @Override
  public ExprCode doGenCode(CodegenContext context, ExprCode code) {
    throw unplanned();
  }

  private IllegalStateException unplanned() {
    return new IllegalStateException("the value of " + table + " is put into physical plans");
  }

  @Override
  public String toString() {
    return "value of " + table;
  }

  @Override
  public String sql() {
    return toString();
  }

  // --- what Scala would write itself ---

  @Override
  public Seq<Expression> children() {
    return CollectionConverters.asScala(List.<Expression>of()).toSeq();
  }

  @Override
  public Expression withNewChildrenInternal(IndexedSeq<Expression> children) {
    return this;
  }

  @Override
  public List<?> arguments() {
    return List.of(schema, answer, number, table);
  }

  @Override
  public boolean equals(Object other) {
    return isLike(other);
  }

  @Override
  public int hashCode() {
    return arguments().hashCode();
  }
}
