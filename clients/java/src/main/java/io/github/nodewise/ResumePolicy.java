package io.github.nodewise;

import java.time.Duration;

/**
 * How long a watch or an ingest writer waits for a server that is unavailable. Every reply resets
 * the clock.
 *
 * @param patience time without a reply, after which it gives up
 * @param openingPatience the same before the first reply: a server that restarts is waited for, a
 *     missing one is reported
 */
public record ResumePolicy(Duration patience, Duration openingPatience) {
  /** 30 s, and 10 s before the server was ever heard. */
  public static final ResumePolicy DEFAULT =
      new ResumePolicy(Duration.ofSeconds(30), Duration.ofSeconds(10));
}
