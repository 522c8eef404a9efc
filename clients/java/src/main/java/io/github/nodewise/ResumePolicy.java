package io.github.nodewise;

import java.time.Duration;

/**
 * How long a watch or an ingest writer waits for a server that went away. Whatever is heard of it
 * starts the clock afresh.
 *
 * @param patience without a word, after which it gives up
 * @param openingPatience the same before the server was ever heard: one that restarts is awaited,
 *     one that is not there is told
 */
public record ResumePolicy(Duration patience, Duration openingPatience) {
  /** 30 s, and 10 s before the server was ever heard. */
  public static final ResumePolicy DEFAULT =
      new ResumePolicy(Duration.ofSeconds(30), Duration.ofSeconds(10));
}
