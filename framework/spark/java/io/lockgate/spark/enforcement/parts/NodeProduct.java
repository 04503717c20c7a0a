package io.lockgate.spark.enforcement.parts;

import java.util.List;
import scala.Product;

/**
 * A node of a plan, or an expression, as a product of the arguments of its constructor. Spark
 * copies and compares nodes by them; Scala would write this itself.
 */
public interface NodeProduct extends Product {
  /** The arguments of the constructor, in order. */
  List<?> arguments();

  @Override
  default int productArity() {
    return arguments().size();
  }

  @Override
  default Object productElement(int index) {
    return arguments().get(index);
  }

  @Override
  default boolean canEqual(Object other) {
    return other != null && other.getClass() == getClass();
  }

  /** Tells whether another node is of the same class and was made of equal arguments. */
  default boolean isLike(Object other) {
    return canEqual(other) && arguments().equals(((NodeProduct) other).arguments());
  }
}
