package io.lockgate.spark.lookup.owner;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.enforcement.parts.DriverLink;
import io.lockgate.spark.messages.Command;
import io.lockgate.spark.messages.Messages;
import io.lockgate.spark.messages.Operations;
import io.lockgate.spark.messages.PollRequest;
import io.lockgate.spark.messages.SayCommand;
import io.lockgate.spark.messages.StartCommand;
import io.lockgate.spark.messages.StopCommand;
import java.io.IOException;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * An executor's processes for lookups, which the driver's Python starts, commands and ends.
 *
 * <p>It decides nothing: messages of processes go to the driver, and its answers back to them.
 */
public final class CacheServerProcesses implements Runnable {
  private static final long RETRY_MILLIS = 500;

  private final String executor;
  private final DriverLink driver;
  private final Map<String, CacheServerProcess> processes = new ConcurrentHashMap<>();

  /** Under which name the gauges of a process are. */
  private final Map<String, String> shown = new ConcurrentHashMap<>();

  private volatile boolean closed;

  public CacheServerProcesses(String executor, DriverLink driver) {
    this.executor = executor;
    this.driver = driver;
    CacheServerProcess.thread(this, "lockgate-lookup").start();
  }

  @Override
  public void run() {
    try {
      while (!closed) {
        long pause = RETRY_MILLIS;
        try {
          JsonNode request = Messages.tree(new PollRequest(executor));
          Executors.Orders orders =
              Messages.read(
                  driver.ask(Operations.LOOKUP_POLL.name(), request), Executors.Orders.class);
          orders.commands().forEach(this::obey);
          pause = orders.pause();
        } catch (InterruptedException e) {
          throw e;
        } catch (Exception e) {
          // The driver is busy, or ends: then this executor ends as well.
        }
        Thread.sleep(pause);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private void obey(Command command) {
    if (command instanceof StartCommand start) {
      start(start);
    } else if (command instanceof StopCommand stop) {
      stop(stop.name());
    } else if (command instanceof SayCommand said) {
      say(said.name(), said.message());
    }
  }

  private void start(StartCommand start) {
    if (closed) {
      return;
    }
    String name = start.name();
    CacheServerProcess before =
        processes.put(name, new CacheServerProcess(start, line -> receive(name, line)));
    if (before != null) {
      before.stop(false);
    }
  }

  private void stop(String name) {
    CacheServerProcess ending = processes.remove(name);
    if (ending != null) {
      ending.stop(true);
    }
    String gauges = shown.remove(name);
    if (gauges != null) {
      Gauges.withdraw(gauges);
    }
  }

  private void say(String name, Object message) {
    CacheServerProcess process = processes.get(name);
    if (process != null) {
      process.say(Messages.tree(message).toString());
    }
  }

  private void receive(String name, String line) throws InterruptedException {
    JsonNode event;
    try {
      event = Bridge.JSON.readTree(line);
    } catch (IOException e) {
      return; // it was killed in the middle of a line
    }
    JsonNode kind = event.get("event");
    if (kind != null && kind.asText().equals("metrics")) {
      shown.put(name, event.get("lookup").asText());
      Gauges.publish(shown.get(name), event.get("values"));
      return;
    }
    // The driver reads the event: an executor only passes it on.
    ObjectNode request = Bridge.object().put("executor", executor).put("name", name);
    request.set("event", event);
    while (!closed) {
      try {
        driver.ask(Operations.LOOKUP_EVENT.name(), request).forEach(answer -> say(name, answer));
        return;
      } catch (DriverLink.RefusedException e) {
        System.err.println(
            "lockgate lookup: the driver refused a message of an owner: " + e.getMessage());
        return;
      } catch (InterruptedException e) {
        throw e;
      } catch (Exception e) {
        Thread.sleep(RETRY_MILLIS); // it must not be lost: the driver waits for it
      }
    }
  }

  /** Ends all processes, when the executor ends. */
  public void close() {
    closed = true;
    processes.values().forEach(process -> process.stop(false));
  }
}
