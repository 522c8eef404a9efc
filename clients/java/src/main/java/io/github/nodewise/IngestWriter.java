package io.github.nodewise;

import com.google.protobuf.ByteString;
import com.google.protobuf.Message;
import io.github.nodewise.v1.IngestBatchRequest;
import io.github.nodewise.v1.IngestState;
import io.github.nodewise.v1.Network;
import io.github.nodewise.v1.Observations;
import io.github.nodewise.v1.PhaseTimings;
import io.github.nodewise.v1.ProfileBatch;
import io.github.nodewise.v1.ProfileServiceGrpc;
import io.github.nodewise.v1.TraceChunk;
import io.github.nodewise.v1.Workload;
import io.grpc.Status;
import java.io.IOException;
import java.io.InputStream;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.function.BooleanSupplier;

/**
 * Writes one session into a profile, so that what it acknowledged is there once.
 *
 * <p>Rows are gathered in batches of 1,000 or for 100 ms, whichever comes first; batches are
 * numbered and sent one after the other. What is not acknowledged is kept, and sent again under the
 * same number when the server comes back; while 64 batches are kept, calls wait. Nothing counts
 * before {@link #commit()}; closing drops what is not committed. Threads may share a writer.
 */
public final class IngestWriter implements AutoCloseable {
  private static final int BATCH_ROWS = 1000;
  private static final long LINGER_NANOS = 100_000_000;
  private static final int MAX_KEPT = 64;
  private static final int CHUNK_BYTES = 512 << 10;

  private final Calls calls;
  private final String profileId;
  private final String sessionId;
  private final ResumePolicy policy;
  private final Thread sender = new Thread(this::run, "nodewise-ingest");

  private final ArrayDeque<ProfileBatch> kept = new ArrayDeque<>();
  private final RowGatherer<Observations> observations =
      new RowGatherer<>(Observations.getDefaultInstance());
  private final RowGatherer<PhaseTimings> phases =
      new RowGatherer<>(PhaseTimings.getDefaultInstance());
  private ProfileBatch.Builder facts = ProfileBatch.newBuilder();
  private boolean pending;
  private long pendingSince;
  private long lastNumber;
  private long sentNumber;
  private long commitNumber;
  private IngestState state;
  private RuntimeException failure;
  private boolean closed;

  IngestWriter(Calls calls, String profileId, String sessionId, ResumePolicy policy) {
    this.calls = calls;
    this.profileId = profileId;
    this.sessionId = sessionId;
    this.policy = policy;
    state = deliver(null, new Restarts(policy));
    lastNumber = state.getDurableSequenceNumber();
    sentNumber = lastNumber;
    commitNumber = state.getCommittedSequenceNumber();
    sender.setDaemon(true);
    sender.start();
  }

  /** The session; one writer at a time may use it. */
  public String sessionId() {
    return sessionId;
  }

  /** What the server last said: numbers that are durable and committed, revision, observations. */
  public synchronized IngestState state() {
    return state;
  }

  /**
   * Adds measured runs.
   *
   * @param runs as columns, in steps per second
   */
  public void observe(Observations runs) {
    add(runs, observations);
  }

  /**
   * Adds timed phases.
   *
   * @param timings as columns, in seconds
   */
  public void phases(PhaseTimings timings) {
    add(timings, phases);
  }

  /**
   * Adds facts of the workload. Facts already known must agree.
   *
   * @param workload the facts
   */
  public synchronized void facts(Workload workload) {
    makeRoom();
    if (facts.hasWorkload()) {
      seal();
    }
    facts.setWorkload(workload);
    touch();
  }

  /**
   * Adds facts of the network. Facts already known must agree.
   *
   * @param network the facts
   */
  public synchronized void facts(Network network) {
    makeRoom();
    if (facts.hasNetwork()) {
      seal();
    }
    facts.setNetwork(network);
    touch();
  }

  /**
   * Adds a batch as it is, after what is pending; it is numbered here.
   *
   * @param batch the batch; a sequence_number in it is ignored
   */
  public synchronized void add(ProfileBatch batch) {
    makeRoom();
    seal();
    keep(batch);
  }

  /**
   * Adds a trace, read to its end.
   *
   * @param source its bytes, best compressed with gzip
   * @param first what its first piece says: trace_id, unique in the session, format, and rank and
   *     world_size where the trace does not tell
   * @throws IOException where it cannot be read
   * @throws IllegalArgumentException where it has no bytes
   */
  public void trace(InputStream source, TraceChunk first) throws IOException {
    byte[] piece = source.readNBytes(CHUNK_BYTES);
    if (piece.length == 0) {
      throw new IllegalArgumentException("trace " + first.getTraceId() + " has no bytes");
    }
    long offset = 0;
    while (piece.length > 0) {
      byte[] following = source.readNBytes(CHUNK_BYTES);
      TraceChunk.Builder chunk =
          offset == 0 ? first.toBuilder() : TraceChunk.newBuilder().setTraceId(first.getTraceId());
      chunk.setOffsetBytes(offset).setData(ByteString.copyFrom(piece));
      chunk.setLast(following.length == 0);
      add(ProfileBatch.newBuilder().addTraceChunks(chunk).build());
      offset += piece.length;
      piece = following;
    }
  }

  /**
   * Sends what waits, and waits until it is durable. It counts after a commit only.
   *
   * @return what the server said
   */
  public synchronized IngestState flush() {
    check();
    seal();
    long number = lastNumber;
    await(() -> state.getDurableSequenceNumber() >= number);
    return state;
  }

  /**
   * Ends the unit: waits until everything added so far is durable and counts. With nothing to
   * commit it tells what is known.
   *
   * @return what the server said: the profile's revision, and how many observations count
   */
  public synchronized IngestState commit() {
    check();
    if (pending || lastNumber > commitNumber) {
      facts.setCommit(true);
      touch();
      seal();
      commitNumber = lastNumber;
    }
    long number = commitNumber;
    await(() -> state.getCommittedSequenceNumber() >= number);
    return state;
  }

  /** Ends the session's sending. What was added since the last commit does not count. */
  @Override
  public void close() {
    synchronized (this) {
      closed = true;
      notifyAll();
    }
    sender.interrupt();
  }

  // --- what comes in, under the lock -----------------------------------------------------------

  private synchronized <M extends Message> void add(M rows, RowGatherer<M> gatherer) {
    makeRoom();
    int count = gatherer.rows(rows);
    if (!gatherer.canBeCut(rows)) {
      seal();
      ProfileBatch.Builder alone = ProfileBatch.newBuilder();
      if (rows instanceof Observations runs) {
        alone.setObservations(runs);
      } else if (rows instanceof PhaseTimings timings) {
        alone.setPhaseTimings(timings);
      }
      keep(alone.build());
      return;
    }
    if (!gatherer.fits(rows)) {
      seal();
    }
    for (int begin = 0; begin < count; ) {
      makeRoom();
      int held = observations.count() + phases.count();
      int end = Math.min(count, begin + BATCH_ROWS - held);
      gatherer.add(rows, begin, end);
      touch();
      if (held + end - begin >= BATCH_ROWS) {
        seal();
      }
      begin = end;
    }
  }

  private void makeRoom() {
    check();
    await(() -> kept.size() < MAX_KEPT);
  }

  private void touch() {
    if (!pending) {
      pending = true;
      pendingSince = System.nanoTime();
      notifyAll();
    }
  }

  /** Number what is pending, if anything is, and keep it. */
  private void seal() {
    if (!pending) {
      return;
    }
    ProfileBatch.Builder batch = facts;
    if (observations.count() > 0) {
      batch.setObservations(observations.take());
    }
    if (phases.count() > 0) {
      batch.setPhaseTimings(phases.take());
    }
    facts = ProfileBatch.newBuilder();
    pending = false;
    keep(batch.build());
  }

  private void keep(ProfileBatch batch) {
    lastNumber++;
    kept.add(batch.toBuilder().setSequenceNumber(lastNumber).build());
    notifyAll();
  }

  private void check() {
    if (failure != null) {
      throw failure;
    }
    if (closed) {
      throw new IllegalStateException("the writer is closed");
    }
  }

  private void await(BooleanSupplier done) {
    while (!done.getAsBoolean()) {
      check();
      try {
        wait();
      } catch (InterruptedException interrupted) {
        Thread.currentThread().interrupt();
        throw NodewiseException.of(Status.Code.CANCELLED, "interrupted while waiting", interrupted);
      }
    }
  }

  // --- what goes out, in the sender's thread ---------------------------------------------------

  private void run() {
    try {
      Restarts restarts = new Restarts(policy);
      restarts.heard();
      for (ProfileBatch batch = next(); batch != null; batch = next()) {
        acknowledge(deliver(batch, restarts));
      }
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt(); // closed
    } catch (RuntimeException error) {
      synchronized (this) {
        failure = error;
        notifyAll();
      }
    }
  }

  /** The next batch to send, once there is one; null = the writer is closed. */
  private synchronized ProfileBatch next() throws InterruptedException {
    while (!closed) {
      long left = pending ? pendingSince + LINGER_NANOS - System.nanoTime() : Long.MAX_VALUE;
      if (kept.isEmpty() && left <= 0) {
        seal();
      }
      if (!kept.isEmpty()) {
        sentNumber = kept.peek().getSequenceNumber();
        return kept.peek();
      }
      if (pending) {
        wait(left / 1_000_000 + 1);
      } else {
        wait();
      }
    }
    return null;
  }

  /** Send a batch, or without one ask how far the session is, until the server answers. */
  private IngestState deliver(ProfileBatch batch, Restarts restarts) {
    IngestBatchRequest.Builder request =
        IngestBatchRequest.newBuilder().setProfileId(profileId).setSessionId(sessionId);
    if (batch != null) {
      request.setBatch(batch);
    }
    while (true) {
      try {
        IngestState told =
            calls.blocking(ProfileServiceGrpc.getIngestBatchMethod(), request.build()).getState();
        restarts.heard();
        return told;
      } catch (NodewiseException error) {
        boolean over = !calls.retry || calls.managed.isShutdown() || Thread.interrupted();
        Duration pause = over ? null : restarts.pause(error);
        if (pause == null) {
          throw error;
        }
        try {
          Thread.sleep(pause.toMillis());
        } catch (InterruptedException interrupted) {
          Thread.currentThread().interrupt();
          throw error;
        }
      }
    }
  }

  private synchronized void acknowledge(IngestState told) {
    long durable = told.getDurableSequenceNumber();
    if (durable > sentNumber) {
      throw NodewiseException.of(
          Status.Code.ABORTED,
          "session "
              + sessionId
              + " holds batch "
              + durable
              + ", which this writer has not written: another writer uses the same session",
          null);
    }
    if (durable < sentNumber) {
      throw NodewiseException.of(
          Status.Code.DATA_LOSS,
          "the server acknowledged batch "
              + sentNumber
              + " of session "
              + sessionId
              + " and now has only "
              + durable,
          null);
    }
    kept.remove();
    state = told;
    notifyAll();
  }
}
