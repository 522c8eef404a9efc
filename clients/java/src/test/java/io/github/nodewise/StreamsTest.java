package io.github.nodewise;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nodewise.v1.IngestBatchRequest;
import io.github.nodewise.v1.IngestBatchResponse;
import io.github.nodewise.v1.IngestState;
import io.github.nodewise.v1.Observations;
import io.github.nodewise.v1.ProfileBatch;
import io.github.nodewise.v1.ProfileServiceGrpc;
import io.github.nodewise.v1.TraceChunk;
import io.github.nodewise.v1.WatchProfilesRequest;
import io.github.nodewise.v1.WatchProfilesResponse;
import io.github.nodewise.v1beta1.SimulateRequest;
import io.github.nodewise.v1beta1.SimulateResponse;
import io.github.nodewise.v1beta1.SimulationProgress;
import io.github.nodewise.v1beta1.SimulationResult;
import io.github.nodewise.v1beta1.SimulationServiceGrpc;
import io.grpc.Status;
import java.io.ByteArrayInputStream;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

class StreamsTest {
  private static final SimulateResponse PROGRESS =
      SimulateResponse.newBuilder().setProgress(SimulationProgress.getDefaultInstance()).build();

  @Test
  void aLongCallThatWasCutIsBegunAgain() {
    AtomicInteger asked = new AtomicInteger();
    try (FakeServer server =
            new FakeServer(
                SimulationServiceGrpc.getSimulateMethod(),
                (request, sink) -> {
                  sink.onNext(PROGRESS);
                  if (asked.incrementAndGet() == 1) {
                    sink.onError(Status.UNAVAILABLE.asRuntimeException());
                  } else {
                    FakeServer.reply(
                        sink,
                        SimulateResponse.newBuilder()
                            .setResult(SimulationResult.getDefaultInstance())
                            .build());
                  }
                });
        NodewiseClient client = NodewiseClient.connect(server.target())) {
      List<SimulationProgress> heard = new ArrayList<>();
      var answer = client.simulate(SimulateRequest.getDefaultInstance(), heard::add);
      assertEquals(SimulationResult.getDefaultInstance(), answer.result());
      assertEquals(1, answer.messages().size());
      assertEquals(2, heard.size());
    }
  }

  @Test
  void aLongCallWithoutAResultIsAFaultOfTheServer() {
    try (FakeServer server =
            new FakeServer(
                SimulationServiceGrpc.getSimulateMethod(),
                (request, sink) -> FakeServer.reply(sink, PROGRESS));
        NodewiseClient client = NodewiseClient.connect(server.target())) {
      NodewiseException error =
          assertThrows(
              NodewiseException.class,
              () -> client.simulate(SimulateRequest.getDefaultInstance(), null));
      assertEquals(Status.Code.INTERNAL, error.code());
    }
  }

  @Test
  void aWatchGoesOnAndClosingItEndsTheCall() throws Exception {
    WatchProfilesResponse caughtUp = WatchProfilesResponse.newBuilder().setCaughtUp(true).build();
    AtomicInteger asked = new AtomicInteger();
    try (FakeServer server =
            new FakeServer(
                ProfileServiceGrpc.getWatchProfilesMethod(),
                (request, sink) -> {
                  sink.onNext(caughtUp);
                  if (asked.incrementAndGet() == 1) {
                    sink.onCompleted();
                  }
                });
        NodewiseClient client = NodewiseClient.connect(server.target())) {
      try (ReplyStream<WatchProfilesResponse> watch =
          client.watchProfiles(WatchProfilesRequest.getDefaultInstance())) {
        assertEquals(caughtUp, watch.next());
        assertEquals(caughtUp, watch.next());
        assertEquals(2, asked.get());
      }
      assertTrue(server.cancelled.await(10, TimeUnit.SECONDS));
    }
  }

  @Test
  void nothingIsBegunAnewBeforeTheReaderWaitsForMore() {
    AtomicInteger begun = new AtomicInteger();
    ReplyStream<String> stream =
        new ReplyStream<>(
            (sink, onceAwaited) -> {
              CompletableFuture<Void> call = new CompletableFuture<>();
              sink.accept("all there is");
              onceAwaited.execute(
                  () -> {
                    begun.incrementAndGet();
                    call.complete(null);
                  });
              return call;
            });
    assertEquals("all there is", stream.next());
    assertEquals(0, begun.get());
    assertFalse(stream.hasNext());
    assertEquals(1, begun.get());
  }

  /** What a server of sessions does: keeps each number once, and says how far it is. */
  private static final class Session {
    final Set<Long> numbers = new HashSet<>();
    final List<ProfileBatch> batches = new ArrayList<>();
    long committed;

    synchronized IngestBatchResponse take(IngestBatchRequest request) {
      ProfileBatch batch = request.getBatch();
      if (request.hasBatch() && numbers.add(batch.getSequenceNumber())) {
        batches.add(batch);
        committed = batch.getCommit() ? batch.getSequenceNumber() : committed;
      }
      IngestState.Builder state = IngestState.newBuilder().setDurableSequenceNumber(numbers.size());
      state.setCommittedSequenceNumber(committed).setRevision(committed > 0 ? 1 : 0);
      return IngestBatchResponse.newBuilder().setState(state).build();
    }
  }

  private static Observations observed(int nodes) {
    return Observations.newBuilder()
        .setConfigurations(Requests.configurations(List.of(new ConfigurationRow(nodes, nodes))))
        .addStepsPerSecond(nodes)
        .build();
  }

  @Test
  void whatWasNotAcknowledgedIsSentAgainUnderItsNumber() {
    Session session = new Session();
    AtomicInteger asked = new AtomicInteger();
    try (FakeServer server =
            new FakeServer(
                ProfileServiceGrpc.getIngestBatchMethod(),
                (request, sink) -> {
                  IngestBatchResponse told = session.take(request);
                  if (request.hasBatch() && asked.incrementAndGet() == 1) {
                    sink.onError(
                        Status.UNAVAILABLE.asRuntimeException()); // stored, and nobody hears
                  } else {
                    FakeServer.reply(sink, told);
                  }
                });
        NodewiseClient client = NodewiseClient.connect(server.target());
        IngestWriter writer = client.ingest("a/b")) {
      writer.observe(observed(1));
      writer.observe(observed(2));
      IngestState state = writer.commit();
      assertEquals(1, state.getRevision());
      assertEquals(1, session.batches.size()); // rows travel together
      assertEquals(
          List.of(1.0, 2.0), session.batches.get(0).getObservations().getStepsPerSecondList());
      assertTrue(asked.get() >= 2);
      assertEquals(state, writer.commit()); // nothing to commit
    }
  }

  @Test
  void aTraceIsCutInPieces() throws Exception {
    Session session = new Session();
    try (FakeServer server =
            new FakeServer(
                ProfileServiceGrpc.getIngestBatchMethod(),
                (request, sink) -> FakeServer.reply(sink, session.take(request)));
        NodewiseClient client = NodewiseClient.connect(server.target());
        IngestWriter writer = client.ingest("a/b")) {
      TraceChunk first = TraceChunk.newBuilder().setTraceId("t").setFormat("auto").build();
      assertThrows(
          IllegalArgumentException.class,
          () -> writer.trace(new ByteArrayInputStream(new byte[0]), first));
      writer.trace(new ByteArrayInputStream(new byte[600 << 10]), first);
      writer.flush();
      List<TraceChunk> chunks =
          session.batches.stream().map(batch -> batch.getTraceChunks(0)).toList();
      assertEquals(
          List.of(0L, 512L << 10), chunks.stream().map(TraceChunk::getOffsetBytes).toList());
      assertEquals(List.of(false, true), chunks.stream().map(TraceChunk::getLast).toList());
      assertEquals("auto", chunks.get(0).getFormat());
    }
  }

  @Test
  void aSessionOfAnotherWriterIsToldAndWhatIsClosedTakesNothing() {
    Session session = new Session();
    try (FakeServer server =
            new FakeServer(
                ProfileServiceGrpc.getIngestBatchMethod(),
                (request, sink) -> {
                  session.take(request);
                  session.numbers.addAll(List.of(7L, 8L, 9L));
                  FakeServer.reply(sink, session.take(request));
                });
        NodewiseClient client = NodewiseClient.connect(server.target())) {
      IngestWriter writer = client.ingest("a/b", "s", ResumePolicy.DEFAULT);
      session.numbers.add(10L);
      writer.observe(observed(1));
      NodewiseException error = assertThrows(NodewiseException.class, writer::commit);
      assertEquals(Status.Code.ABORTED, error.code());
      writer.close();
      assertThrows(RuntimeException.class, () -> writer.observe(observed(2)));
    }
  }
}
