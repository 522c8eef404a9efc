package scheduler;

import io.github.nodewise.NodewiseClient;
import io.github.nodewise.NodewiseException;
import io.github.nodewise.ReplyStream;
import io.github.nodewise.v1.WatchProfilesRequest;
import io.github.nodewise.v1.WatchProfilesResponse;
import java.util.HashMap;
import java.util.Map;
import java.util.function.BooleanSupplier;

/** The newest revision of each profile, as a watch tells it, in a thread of its own. */
final class Revisions implements AutoCloseable {
  private static final long PATIENCE_NANOS = 30_000_000_000L;

  private final Map<String, Long> newest = new HashMap<>();
  private final ReplyStream<WatchProfilesResponse> watch;
  private boolean caughtUp;
  private NodewiseException failure;

  Revisions(NodewiseClient client, String prefix) {
    watch = client.watchProfiles(WatchProfilesRequest.newBuilder().setNamePrefix(prefix).build());
    Thread listening = new Thread(this::listen, "watch");
    listening.setDaemon(true);
    listening.start();
  }

  private void listen() {
    try {
      watch.forEach(this::hear);
    } catch (NodewiseException error) {
      synchronized (this) {
        failure = error;
        notifyAll();
      }
    }
  }

  private synchronized void hear(WatchProfilesResponse event) {
    event
        .getProfilesList()
        .forEach(told -> newest.merge(told.getProfileId(), told.getRevision(), Math::max));
    caughtUp |= event.getCaughtUp();
    notifyAll();
  }

  /** Waits until all that is stored was told; gives how many profiles there are. */
  synchronized int caughtUp() {
    await(() -> caughtUp);
    return newest.size();
  }

  synchronized long of(String profileId) {
    return newest.getOrDefault(profileId, 0L);
  }

  /** Waits until the watch has told of a revision. */
  synchronized void reached(String profileId, long revision) {
    await(() -> of(profileId) >= revision);
  }

  private void await(BooleanSupplier done) {
    long ends = System.nanoTime() + PATIENCE_NANOS;
    while (!done.getAsBoolean()) {
      if (failure != null) {
        throw failure;
      }
      long left = (ends - System.nanoTime()) / 1_000_000;
      if (left <= 0) {
        throw new IllegalStateException("the watch received nothing new for 30 s");
      }
      try {
        wait(left);
      } catch (InterruptedException interrupted) {
        Thread.currentThread().interrupt();
        throw new IllegalStateException("interrupted while waiting for the watch", interrupted);
      }
    }
  }

  @Override
  public void close() {
    watch.close();
  }
}
