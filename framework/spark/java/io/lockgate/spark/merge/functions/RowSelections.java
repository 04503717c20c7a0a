package io.lockgate.spark.merge.functions;

import io.lockgate.spark.merge.MergePlan;

/** Functions whose result is the value of one of the rows. */
final class RowSelections {
  private RowSelections() {}

  static ColumnFunction of(MergePlan.Column plan) {
    return switch (plan.function()) {
      case "last" -> new Key(plan);
      case "set" -> new SetInGroup(plan);
      case "last_value" -> new Last(plan);
      case "last_non_null_value" -> new LastNonNull(plan);
      case "first_value" -> new First(plan, false);
      case "first_non_null_value" -> new First(plan, true);
      case "min", "bool_and" -> new Extreme(plan, -1);
      default -> new Extreme(plan, 1);
    };
  }

  /** A column of the key, which all rows share. */
  private static final class Key extends Last {
    Key(MergePlan.Column plan) {
      super(plan);
    }

    @Override
    public Object retract(Object value, Object gone) {
      return gone;
    }
  }

  private static class Last extends ColumnFunction {
    Last(MergePlan.Column plan) {
      super(plan);
    }

    @Override
    public Object add(Object value, Object newer) {
      return newer;
    }

    @Override
    public Object retract(Object value, Object gone) {
      return null;
    }
  }

  /** A column of a group that has no function: what comes late does not touch it. */
  private static final class SetInGroup extends Last {
    SetInGroup(MergePlan.Column plan) {
      super(plan);
    }

    @Override
    public Object retractLate(Object value, Object gone) {
      return value;
    }
  }

  private static final class LastNonNull extends ColumnFunction {
    LastNonNull(MergePlan.Column plan) {
      super(plan);
    }

    @Override
    public Object add(Object value, Object newer) {
      return newer == null ? value : newer;
    }

    @Override
    public Object retract(Object value, Object gone) {
      return gone == null ? value : null;
    }
  }

  private static final class First extends ColumnFunction {
    private final boolean skipsNulls;
    private boolean begun;

    First(MergePlan.Column plan, boolean skipsNulls) {
      super(plan);
      this.skipsNulls = skipsNulls;
    }

    @Override
    public void reset() {
      begun = false;
    }

    @Override
    public Object add(Object value, Object newer) {
      if (begun || skipsNulls && newer == null) {
        return value;
      }
      begun = true;
      return newer;
    }
  }

  private static final class Extreme extends ColumnFunction {
    private final int sign;

    Extreme(MergePlan.Column plan, int sign) {
      super(plan);
      this.sign = sign;
    }

    @Override
    public Object add(Object value, Object newer) {
      if (value == null || newer == null) {
        return value == null ? newer : value;
      }
      return sign * Order.compare(value, newer) < 0 ? newer : value;
    }

    @Override
    public Object addLate(Object value, Object late) {
      return add(value, late);
    }
  }
}
