package io.github.nodewise.conformance;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonArray;
import com.google.gson.JsonNull;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import io.github.nodewise.NodewiseClient;
import io.github.nodewise.NodewiseClientBuilder;
import io.github.nodewise.NodewiseException;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;

/**
 * The conformance executable: JSON lines in, JSON lines out, as clients/conformance/PROTOCOL.md has
 * it. What it does with a call goes through the public face of the client alone.
 */
public final class Main {
  private static final Gson GSON =
      new GsonBuilder().serializeNulls().serializeSpecialFloatingPointValues().create();

  private final Map<JsonObject, NodewiseClient> clients = new HashMap<>();
  private final ScheduledExecutorService clock = Executors.newSingleThreadScheduledExecutor();

  private Main() {}

  /**
   * Answers lines until there are none.
   *
   * @param words none
   * @throws IOException where the input cannot be read
   */
  public static void main(String[] words) throws IOException {
    Main asked = new Main();
    PrintStream output = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    BufferedReader input =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = input.readLine(); line != null; line = input.readLine()) {
      output.println(GSON.toJson(asked.answer(JsonParser.parseString(line).getAsJsonObject())));
    }
    asked.clock.shutdownNow();
    asked.clients.values().forEach(NodewiseClient::close);
  }

  private JsonObject answer(JsonObject line) throws IOException {
    JsonObject options =
        line.has("options") ? line.getAsJsonObject("options").deepCopy() : new JsonObject();
    Duration timeout = seconds(options, "timeout_seconds");
    options.remove("timeout_seconds");
    JsonObject key = options.deepCopy();
    key.add("target", line.get("target"));
    NodewiseClient client = clients.get(key);
    if (client == null) {
      client = built(line.get("target").getAsString(), options);
      clients.put(key, client);
    }
    JsonObject told = new JsonObject();
    told.add("id", line.get("id"));
    Faces faces = new Faces(timeout == null ? client : client.withTimeout(timeout), line);
    long begun = System.nanoTime();
    Interruption interruption = new Interruption(Thread.currentThread());
    Duration cancelAfter = seconds(line, "cancel_after_seconds");
    if (cancelAfter != null) {
      clock.schedule(interruption::come, cancelAfter.toMillis(), TimeUnit.MILLISECONDS);
    }
    try {
      faces.ask();
      told.addProperty("code", "OK");
    } catch (NodewiseException error) {
      explain(error, told);
    } catch (ReflectiveOperationException | RuntimeException fault) {
      told.addProperty("code", "UNKNOWN");
      told.addProperty("message", fault.toString());
      fault.printStackTrace();
    } finally {
      interruption.comeNoMore();
    }
    told.addProperty("elapsed_seconds", (System.nanoTime() - begun) / 1e9);
    told.add("replies", faces.replies);
    told.add("rows", faces.rows);
    return told;
  }

  /** A caller that waits in a call cancels it by interrupting its thread: now, or never. */
  private static final class Interruption {
    private final Thread caller;
    private boolean over;

    Interruption(Thread caller) {
      this.caller = caller;
    }

    synchronized void come() {
      if (!over) {
        caller.interrupt();
      }
    }

    synchronized void comeNoMore() {
      over = true;
      Thread.interrupted();
    }
  }

  private static NodewiseClient built(String target, JsonObject options) throws IOException {
    NodewiseClientBuilder builder = NodewiseClient.builder(target);
    if (options.has("retry")) {
      builder.retry(options.get("retry").getAsBoolean());
    }
    if (options.has("token")) {
      builder.token(options.get("token").getAsString());
    }
    if (options.has("user_agent")) {
      builder.userAgent(options.get("user_agent").getAsString());
    }
    if (options.has("max_receive_bytes")) {
      builder.maxReceiveBytes(options.get("max_receive_bytes").getAsInt());
    }
    if (options.has("tls")) {
      JsonObject tls = options.getAsJsonObject("tls");
      if (tls.has("ca")) {
        builder.tls(file(tls, "ca"));
      } else {
        builder.tls();
      }
      if (tls.has("certificate")) {
        builder.clientCertificate(file(tls, "certificate"), file(tls, "key"));
      }
    }
    return builder.build();
  }

  private static byte[] file(JsonObject options, String name) throws IOException {
    return Files.readAllBytes(Path.of(options.get(name).getAsString()));
  }

  private static void explain(NodewiseException error, JsonObject told) {
    told.addProperty("code", error.code().name());
    told.addProperty("reason", error.reason());
    told.addProperty("message", error.statusMessage());
    JsonArray violations = new JsonArray();
    for (var each : error.violations()) {
      JsonObject violation = new JsonObject();
      violation.addProperty("field", each.getField());
      violation.addProperty("description", each.getDescription());
      violations.add(violation);
    }
    told.add("violations", violations);
    told.add("metadata", GSON.toJsonTree(error.metadata()));
    told.add("retry_delay_seconds", JsonNull.INSTANCE);
    error
        .retryDelay()
        .ifPresent(delay -> told.addProperty("retry_delay_seconds", delay.toNanos() / 1e9));
  }

  private static Duration seconds(JsonObject from, String name) {
    return from.has(name) && !from.get(name).isJsonNull()
        ? Duration.ofNanos(Math.round(from.get(name).getAsDouble() * 1e9))
        : null;
  }
}
