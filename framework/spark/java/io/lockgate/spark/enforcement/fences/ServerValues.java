package io.lockgate.spark.enforcement.fences;

import io.lockgate.spark.enforcement.Govern;
import io.lockgate.spark.enforcement.parts.ServerReferences;
import java.util.List;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.command.ResetCommand;

/**
 * Refuses statements of governed sessions that have set a setting to a variable of the server:
 * Spark puts its value in the setting's place wherever it reads the setting, and shows it in names
 * and messages.
 */
public final class ServerValues extends Rule<LogicalPlan> {
  private final SparkSession session;

  /** For one session, made before anybody asks for its current catalog. */
  public ServerValues(SparkSession session) {
    this.session = session;
    ServerBindings.hide(session);
  }

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    if (!(plan instanceof ResetCommand) && Govern.decides(session)) {
      List<String> names = ServerReferences.inSettings(session);
      if (!names.isEmpty()) {
        throw new IllegalArgumentException(
            "Settings of a session may not take variables of the server, as "
                + String.join(", ", names)
                + " does: RESET it, or use another session");
      }
    }
    return plan;
  }
}
