package io.lockgate.spark.rules;

import io.lockgate.spark.enforcement.parts.NodeProduct;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenContext;
import org.apache.spark.sql.catalyst.expressions.codegen.ExprCode;
import org.apache.spark.sql.types.DataType;
import scala.Function1;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * An expression that Spark shall not translate for sources: the same value, under a class that it
 * does not know.
 */
final class Wrapped extends Expression implements NodeProduct {
  private final Expression child;

  Wrapped(Expression child) {
    this.child = child;
  }

  Expression child() {
    return child;
  }

  @Override
  public boolean nullable() {
    return child.nullable();
  }

  @Override
  public DataType dataType() {
    return child.dataType();
  }

  @Override
  public Object eval(InternalRow row) {
    return child.eval(row);
  }

  @Override
  public ExprCode genCode(CodegenContext context) {
    return child.genCode(context);
  }

  @Override
  public ExprCode doGenCode(CodegenContext context, ExprCode code) {
    throw new IllegalStateException("genCode is that of the child");
  }

  @Override
  public String sql() {
    return child.sql();
  }

  @Override
  public String toString() {
    return child.toString();
  }

  // --- what Scala would write itself ---

  @Override
  public Seq<Expression> children() {
    return CollectionConverters.asScala(List.of(child)).toSeq();
  }

  @Override
  public Expression mapChildren(Function1<Expression, Expression> change) {
    Expression changed = change.apply(child);
    return changed.fastEquals(child) ? this : new Wrapped(changed);
  }

  @Override
  public Expression withNewChildrenInternal(IndexedSeq<Expression> children) {
    return new Wrapped(children.head());
  }

  @Override
  public List<?> arguments() {
    return List.of(child);
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
