package io.lockgate.spark.enforcement;

import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.enforcement.parts.NodeProduct;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenContext;
import org.apache.spark.sql.catalyst.expressions.codegen.ExprCode;
import org.apache.spark.sql.types.DataType;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * A column that a user may not use. Spark prunes it unless something above uses it; a statement
 * with one left is refused.
 */
public final class DeniedColumn extends Expression implements NodeProduct {
  private final Expression child;
  private final String name;

  public DeniedColumn(Expression child, String name) {
    this.child = child;
    this.name = name;
  }

  String column() {
    return name;
  }

  private RuntimeException refused() {
    return Bridge.failure("column " + name + " is denied");
  }

  @Override
  public Seq<Expression> children() {
    return CollectionConverters.asScala(List.of(child)).toSeq();
  }

  @Override
  public boolean nullable() {
    return true;
  }

  @Override
  public DataType dataType() {
    return child.dataType();
  }

  @Override
  public boolean foldable() {
    return false;
  }

  @Override
  public Object eval(InternalRow row) {
    throw refused();
  }

  @Override
  public ExprCode doGenCode(CodegenContext context, ExprCode code) {
    throw refused();
  }

  @Override
  public Expression withNewChildrenInternal(IndexedSeq<Expression> children) {
    return new DeniedColumn(children.apply(0), name);
  }

  @Override
  public List<?> arguments() {
    return List.of(child, name);
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
