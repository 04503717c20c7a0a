package io.lockgate.spark.enforcement;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lockgate.spark.enforcement.parts.NodeProduct;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.apache.spark.sql.catalyst.analysis.MultiInstanceRelation;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeMap;
import org.apache.spark.sql.catalyst.expressions.AttributeMap$;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.ColumnStat;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Statistics;
import org.apache.spark.sql.catalyst.trees.TreeNodeTag;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.QueryExecution$;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import scala.Function1;
import scala.Option;
import scala.Tuple2;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.math.BigInt;
import scala.runtime.BoxedUnit;

/**
 * The border between a policy and a user's query: below it are row filter and masks, above it the
 * user's expressions.
 *
 * <p>Optimizer rules move nothing through a node that they do not know, so that no expression of a
 * user meets a hidden row, whatever rules there are. Two barriers of different rights differ, and
 * so no cached plan of one user serves another.
 */
public final class Barrier extends HiddenTree implements NodeProduct {
  /** As much as Spark broadcasts by default. */
  private static final BigInteger LEAST_BYTES = BigInteger.valueOf(10 << 20);

  private static final BigInteger STEP = BigInteger.valueOf(100);

  private static final AttributeMap<ColumnStat> NO_COLUMNS =
      AttributeMap$.MODULE$.apply(
          CollectionConverters.asScala(List.<Tuple2<Attribute, ColumnStat>>of()).toSeq());

  private static final TreeNodeTag<ProtectedRelation> OPENED =
      new TreeNodeTag<>("lockgate.guarded-relation");

  private final LogicalPlan child;
  private final ProtectedRelation guarded;
  private SparkPlan planned;

  public Barrier(LogicalPlan child, ProtectedRelation guarded) {
    this.child = child;
    this.guarded = guarded;
  }

  /**
   * The relation below, whose rights were decided for a user.
   *
   * @param relation as Python knows it
   * @param rights tells apart what different users see
   * @param refused whether nothing of it may be read
   * @param removable whether queries that use no hidden column need no barrier, as Python says
   * @param computed whether there is a row filter or a mask, which settings of a session must suit
   * @param streamed what each batch of a stream asks about again; null for any other relation
   */
  public record ProtectedRelation(
      ObjectNode relation,
      String user,
      String rights,
      boolean refused,
      boolean removable,
      boolean computed,
      StreamRights streamed) {
    @Override
    public boolean equals(Object other) {
      return other instanceof ProtectedRelation guarded
          && guarded.rights.equals(rights)
          && guarded.user.equals(user)
          && guarded.refused == refused
          && guarded.removable == removable;
    }

    @Override
    public int hashCode() {
      return Objects.hash(rights, user, refused, removable);
    }

    @Override
    public String toString() {
      return refused ? "refused" : "rights of " + user;
    }
  }

  /** The barrier that a node is, sealed or not; null for any other. */
  static Barrier of(LogicalPlan plan) {
    return plan instanceof SealedBarrier sealed
        ? sealed.barrier()
        : plan instanceof Barrier barrier ? barrier : null;
  }

  LogicalPlan child() {
    return child;
  }

  ProtectedRelation guarded() {
    return guarded;
  }

  /**
   * Tells whether what is left of the relation is as stored: all rows, and columns without a mask.
   * Then nothing is below that a user's expression must not meet.
   */
  boolean hidesNothing() {
    return guarded.removable && !guarded.refused && !isStreaming() && isAsStored(child);
  }

  /** What is below, without the barrier; its relation keeps what was decided about it. */
  LogicalPlan opened() {
    LogicalPlan below = child.clone(); // other statements may have the same relation
    LogicalPlan relation = below;
    while (!relation.children().isEmpty()) {
      relation = relation.children().head();
    }
    relation.setTagValue(OPENED, guarded);
    return below;
  }

  /** What was decided about a relation, whose barrier is here or is gone; null without one. */
  static ProtectedRelation guardOf(LogicalPlan plan) {
    Barrier barrier = of(plan);
    LogicalPlan leaf = plan instanceof DataSourceV2ScanRelation scan ? scan.relation() : plan;
    return barrier != null ? barrier.guarded : leaf.getTagValue(OPENED).getOrElse(() -> null);
  }

  /** The conditions there are a user's own, moved below by {@link PushLeakproof}. */
  private static boolean isAsStored(LogicalPlan plan) {
    if (plan instanceof Project project) {
      return CollectionConverters.asJava(project.projectList()).stream()
              .allMatch(Barrier::isAsStored)
          && isAsStored(project.child());
    }
    return plan instanceof Filter filter
        ? isAsStored(filter.child())
        : plan instanceof MultiInstanceRelation && plan.children().isEmpty();
  }

  private static boolean isAsStored(NamedExpression column) {
    return column instanceof AttributeReference
        || column instanceof Alias alias && alias.child() instanceof AttributeReference;
  }

  /**
   * The plan of what is below, the same each time if {@code keeps}: adaptive execution plans a
   * statement several times, and asks each time for the buckets.
   */
  synchronized SparkPlan planned(SparkSession session, boolean keeps) {
    boolean isKept = keeps && planned != null && planned.session() == session;
    SparkPlan found =
        isKept ? planned : QueryExecution$.MODULE$.prepareExecutedPlan(session, child);
    planned = keeps ? found : null;
    return found;
  }

  /** The same rights over another plan of the same columns. */
  Barrier over(LogicalPlan plan) {
    Barrier made = new Barrier(plan, guarded);
    made.copyTagsFrom(this);
    return made;
  }

  @Override
  public Seq<LogicalPlan> children() {
    return CollectionConverters.asScala(List.of(child)).toSeq();
  }

  @Override
  public Seq<Attribute> output() {
    return child.output();
  }

  /**
   * The size of what is below, so coarse that EXPLAIN and the chosen plan tell nothing of how many
   * hidden rows match a condition; no counts. Up to {@link #LEAST_BYTES} it is the same.
   */
  @Override
  public Statistics stats() {
    Statistics found = child.stats();
    if (!guarded.computed()) {
      return found;
    }
    BigInteger size = LEAST_BYTES;
    while (size.compareTo(found.sizeInBytes().bigInteger()) < 0) {
      size = size.multiply(STEP);
    }
    return new Statistics(new BigInt(size), Option.empty(), NO_COLUMNS, found.isRuntime());
  }

  /** Answers no columns: nobody decides about those of metadata. */
  @Override
  public Seq<Attribute> metadataOutput() {
    return CollectionConverters.asScala(List.<Attribute>of()).toSeq();
  }

  @Override
  public LogicalPlan withNewChildrenInternal(IndexedSeq<LogicalPlan> children) {
    return new Barrier(children.apply(0), guarded);
  }

  /**
   * Appends this node alone, wherever Spark prints a plan: what is below holds conditions of a
   * policy.
   */
  @Override
  void print(
      int depth,
      ArrayList<Object> lastChildren,
      Function1<String, BoxedUnit> append,
      String prefix,
      int maxFields,
      int indent) {
    append.apply("   ".repeat(indent));
    for (int i = 0; i < depth; i++) {
      boolean isLast = (Boolean) lastChildren.get(i);
      append.apply(i < depth - 1 ? (isLast ? "   " : ":  ") : isLast ? "+- " : ":- ");
    }
    append.apply(prefix + simpleString(maxFields) + "\n");
  }

  @Override
  public String simpleString(int maxFields) {
    return "Barrier " + guarded;
  }

  @Override
  public List<?> arguments() {
    return List.of(child, guarded);
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
