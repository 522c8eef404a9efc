package io.github.nodewise;

import io.github.nodewise.ServiceConfig.RetryPolicy;
import io.grpc.Status;
import java.time.Duration;
import java.util.Set;

/** When and how often an interrupted call starts again; every reply resets the limits. */
final class Restarts {
  /** A server that goes away, that cancels what it had not begun, or whose own limit is over. */
  private static final Set<Status.Code> CODES =
      Set.of(Status.Code.UNAVAILABLE, Status.Code.CANCELLED, Status.Code.DEADLINE_EXCEEDED);

  private static final RetryPolicy PAUSES =
      new RetryPolicy(40, Duration.ofMillis(50), Duration.ofSeconds(1), 2, CODES);

  private final ResumePolicy policy;
  private boolean opened;
  private int attempts;
  private long goneAtNanos;

  Restarts(ResumePolicy policy) {
    this.policy = policy;
  }

  /** The server said something. */
  synchronized void heard() {
    opened = true;
    attempts = 0;
  }

  /**
   * The pause before the next attempt; null where another would not help. An overloaded server says
   * when to come back, to the caller.
   *
   * @param error what the last attempt ended with; null = it ended without an error
   */
  synchronized Duration pause(NodewiseException error) {
    if (attempts == 0) {
      goneAtNanos = System.nanoTime();
    }
    attempts++;
    Duration asked = error == null ? Duration.ZERO : error.retryDelay().orElse(Duration.ZERO);
    Duration pause = PAUSES.pause(attempts, asked);
    long away = System.nanoTime() - goneAtNanos + pause.toNanos();
    Duration patience = opened ? policy.patience() : policy.openingPatience();
    boolean again = error == null || (CODES.contains(error.code()) && !isFull(error));
    return again && attempts < PAUSES.maxAttempts() && away <= patience.toNanos() ? pause : null;
  }

  /** Whether the server's store is full, which lasts until somebody frees space. */
  private static boolean isFull(NodewiseException error) {
    return error.reason().equals("STORE_UNAVAILABLE")
        && "full".equals(error.metadata().get("cause"));
  }
}
