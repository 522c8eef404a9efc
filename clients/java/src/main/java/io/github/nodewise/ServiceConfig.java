package io.github.nodewise;

import com.google.gson.Gson;
import com.google.gson.reflect.TypeToken;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;

/**
 * Which calls are retried, how often and on what: the one file that the clients of all languages
 * share.
 */
final class ServiceConfig {
  static final ServiceConfig SHARED = new ServiceConfig();

  /** Of unary calls that the file does not name. */
  private static final Duration TIMEOUT = Duration.ofSeconds(10);

  private static final Duration STREAM_TIMEOUT = Duration.ofSeconds(600);

  private final Map<String, Object> retries;
  private final Map<String, Duration> timeouts = new HashMap<>();
  private final Map<String, RetryPolicy> policies = new HashMap<>();

  /** How a call that changes nothing is begun again. */
  record RetryPolicy(
      int maxAttempts, Duration initial, Duration most, double multiplier, Set<Status.Code> codes) {

    /**
     * The pause after so many attempts, longer or shorter by up to a fifth; {@code asked} is the
     * least.
     */
    Duration pause(int attempts, Duration asked) {
      double grown = initial.toNanos() * Math.pow(multiplier, Math.min(attempts - 1, 60));
      double pause = Math.min(most.toNanos(), grown) * (0.8 + 0.4 * Math.random());
      return Duration.ofNanos(Math.max((long) pause, asked.toNanos()));
    }
  }

  private ServiceConfig() {
    // Gson reads every number as a Double, which is what gRPC wants.
    retries =
        new Gson()
            .fromJson(
                new InputStreamReader(
                    resource("nodewise_grpc_service_config.json"), StandardCharsets.UTF_8),
                new TypeToken<Map<String, Object>>() {}.getType());
    for (Object entry : (List<?>) retries.get("methodConfig")) {
      Map<?, ?> config = (Map<?, ?>) entry;
      // Every call here states a deadline of its own; gRPC would take the shorter of the two.
      Object timeout = config.remove("timeout");
      for (Object each : (List<?>) config.get("name")) {
        Map<?, ?> name = (Map<?, ?>) each;
        String method =
            MethodDescriptor.generateFullMethodName(
                (String) name.get("service"), (String) name.get("method"));
        if (timeout != null) {
          timeouts.put(method, seconds(timeout));
        }
        if (config.get("retryPolicy") instanceof Map<?, ?> policy) {
          policies.put(method, policy(policy));
        }
      }
    }
  }

  /** What the file says of retries. */
  Map<String, Object> retries() {
    return retries;
  }

  /** How long a call may take that is given no deadline of its own. */
  Duration timeout(MethodDescriptor<?, ?> method) {
    boolean unary = method.getType() == MethodDescriptor.MethodType.UNARY;
    return timeouts.getOrDefault(method.getFullMethodName(), unary ? TIMEOUT : STREAM_TIMEOUT);
  }

  /** How a method is begun again; the file has one for each that may be. */
  RetryPolicy policy(MethodDescriptor<?, ?> method) {
    return policies.get(method.getFullMethodName());
  }

  /** Version of this client. */
  static String version() {
    Properties properties = new Properties();
    try (InputStream stream = resource("client.properties")) {
      properties.load(stream);
    } catch (IOException failure) {
      throw new UncheckedIOException(failure);
    }
    return properties.getProperty("version");
  }

  private static InputStream resource(String name) {
    return ServiceConfig.class.getResourceAsStream(name);
  }

  private static RetryPolicy policy(Map<?, ?> policy) {
    Set<Status.Code> codes = new HashSet<>();
    for (Object code : (List<?>) policy.get("retryableStatusCodes")) {
      codes.add(Status.Code.valueOf((String) code));
    }
    return new RetryPolicy(
        ((Double) policy.get("maxAttempts")).intValue(),
        seconds(policy.get("initialBackoff")),
        seconds(policy.get("maxBackoff")),
        (Double) policy.get("backoffMultiplier"),
        codes);
  }

  private static Duration seconds(Object text) {
    double seconds = Double.parseDouble(((String) text).replace("s", ""));
    return Duration.ofNanos(Math.round(seconds * 1e9));
  }
}
