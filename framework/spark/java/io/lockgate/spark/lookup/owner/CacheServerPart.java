package io.lockgate.spark.lookup.owner;

import com.codahale.metrics.MetricRegistry;
import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.enforcement.parts.DriverLink;
import io.lockgate.spark.enforcement.parts.Fields;
import io.lockgate.spark.enforcement.parts.Part;
import io.lockgate.spark.messages.EventRequest;
import io.lockgate.spark.messages.KeyReply;
import io.lockgate.spark.messages.Operations;
import io.lockgate.spark.messages.PollRequest;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import org.apache.spark.SparkContext;
import org.apache.spark.api.plugin.PluginContext;

/** Processes of executors that keep the caches of lookups, and their messages. */
public final class CacheServerPart implements Part {
  private static final Pattern EXECUTOR = Pattern.compile("[0-9A-Za-z_.-]{1,128}");

  @Override
  public void startOnDriver(SparkContext context, MetricRegistry metrics) {
    Gauges.showIn(metrics);
    Executors.watch(context);
  }

  @Override
  public AutoCloseable startOnExecutor(PluginContext plugin, DriverLink driver) {
    Gauges.showIn(plugin.metricRegistry());
    CacheServerProcesses owners = new CacheServerProcesses(plugin.executorID(), driver);
    return owners::close;
  }

  @Override
  public Map<String, Answer> answers() {
    return Map.of(
        Operations.LOOKUP_POLL.name(), CacheServerPart::poll,
        Operations.LOOKUP_EVENT.name(), CacheServerPart::pass);
  }

  private static Executors.Orders poll(Fields fields) {
    PollRequest request = fields.request(PollRequest.class);
    Fields.check("executor", request.executor(), EXECUTOR);
    return Executors.poll(request);
  }

  private static List<KeyReply> pass(Fields fields) {
    EventRequest request = fields.request(EventRequest.class);
    Fields.check("executor", request.executor(), EXECUTOR);
    Fields.check("name", request.name(), Fields.NAME);
    Executors.noteEvent(request.executor());
    return Bridge.ask(Operations.LOOKUP_EVENT, request);
  }
}
