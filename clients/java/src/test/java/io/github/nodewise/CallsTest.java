package io.github.nodewise;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nodewise.v1.AppendProfileRequest;
import io.github.nodewise.v1.AppendProfileResponse;
import io.github.nodewise.v1.Device;
import io.github.nodewise.v1.ListDevicesRequest;
import io.github.nodewise.v1.ListDevicesResponse;
import io.github.nodewise.v1.PredictRequest;
import io.github.nodewise.v1.PredictResponse;
import io.github.nodewise.v1.PredictionServiceGrpc;
import io.github.nodewise.v1.ProfileServiceGrpc;
import io.grpc.Status;
import io.grpc.stub.ServerCallStreamObserver;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BiConsumer;
import org.junit.jupiter.api.Test;

class CallsTest {
  private static final PredictRequest QUESTION = PredictRequest.getDefaultInstance();
  private static final PredictResponse ANSWER = PredictResponse.getDefaultInstance();

  private static FakeServer predicting(
      BiConsumer<PredictRequest, ServerCallStreamObserver<PredictResponse>> answer) {
    return new FakeServer(PredictionServiceGrpc.getPredictMethod(), answer);
  }

  @Test
  void whatIsNotThereIsAskedAgain() {
    AtomicInteger asked = new AtomicInteger();
    try (FakeServer server =
            predicting(
                (request, sink) -> {
                  if (asked.incrementAndGet() < 3) {
                    sink.onError(Status.UNAVAILABLE.asRuntimeException());
                  } else {
                    FakeServer.reply(sink, ANSWER);
                  }
                });
        NodewiseClient client = NodewiseClient.connect(server.target())) {
      assertEquals(ANSWER, client.predict(QUESTION));
      assertEquals(3, asked.get());
    }
  }

  @Test
  void withoutRetriesOnceIsAll() {
    AtomicInteger asked = new AtomicInteger();
    try (FakeServer server =
            predicting(
                (request, sink) -> {
                  asked.incrementAndGet();
                  sink.onError(Status.UNAVAILABLE.asRuntimeException());
                });
        NodewiseClient client = NodewiseClient.builder(server.target()).retry(false).build()) {
      assertEquals(Status.Code.UNAVAILABLE, failure(client).code());
      assertEquals(1, asked.get());
    }
  }

  @Test
  void anErrorTellsAllThatTheServerSaid() {
    try (FakeServer server =
            predicting(
                (request, sink) ->
                    sink.onError(
                        FakeServer.refusal(
                            Status.Code.INVALID_ARGUMENT, "INVALID_FIELD", "ranges[0].nodes", 0)));
        NodewiseClient client = NodewiseClient.connect(server.target())) {
      NodewiseException error = failure(client);
      assertEquals(Status.Code.INVALID_ARGUMENT, error.code());
      assertEquals("INVALID_FIELD", error.reason());
      assertEquals("no", error.statusMessage());
      assertEquals("3", error.metadata().get("limit"));
      assertEquals("ranges[0].nodes", error.violations().get(0).getField());
      assertTrue(error.retryDelay().isEmpty());
      assertTrue(error.getMessage().contains("ranges[0].nodes: must be right"), error.getMessage());
    }
  }

  @Test
  void whoIsOverloadedIsNotAskedAgainBeforeItSays() {
    AtomicInteger asked = new AtomicInteger();
    try (FakeServer server =
            predicting(
                (request, sink) -> {
                  asked.incrementAndGet();
                  sink.onError(
                      FakeServer.refusal(Status.Code.RESOURCE_EXHAUSTED, "OVERLOADED", "", 2));
                });
        NodewiseClient client = NodewiseClient.connect(server.target())) {
      assertEquals(Duration.ofSeconds(2), failure(client).retryDelay().orElseThrow());
      assertEquals(1, asked.get());
    }
  }

  @Test
  void everyCallBringsADeadlineAToken() {
    try (FakeServer server = predicting((request, sink) -> FakeServer.reply(sink, ANSWER));
        NodewiseClient client =
            NodewiseClient.builder(server.target())
                .token("nw_secret")
                .userAgent("scheduler/2")
                .build()) {
      client.predict(QUESTION);
      client.withTimeout(Duration.ofMillis(1500)).predict(QUESTION);
      assertEquals("Bearer nw_secret", server.header(0, "authorization"));
      assertTrue(
          server.header(0, "user-agent").startsWith("scheduler/2 grpc-java"),
          server.header(0, "user-agent"));
      assertNotNull(server.header(0, "grpc-timeout"));
      assertTrue(
          server.header(1, "grpc-timeout").startsWith("1"), server.header(1, "grpc-timeout"));
    }
  }

  @Test
  void aCallThatIsLateSaysHowToAllowMore() {
    try (FakeServer server = predicting((request, sink) -> {});
        NodewiseClient client = NodewiseClient.connect(server.target())) {
      NodewiseException error =
          assertThrows(
              NodewiseException.class,
              () -> client.withTimeout(Duration.ofMillis(100)).predict(QUESTION));
      assertEquals(Status.Code.DEADLINE_EXCEEDED, error.code());
      assertTrue(error.getMessage().contains("withTimeout"), error.getMessage());
    }
  }

  @Test
  void cancellingAFutureEndsTheCallAtTheServer() throws Exception {
    CompletableFuture<Void> arrived = new CompletableFuture<>();
    try (FakeServer server = predicting((request, sink) -> arrived.complete(null));
        NodewiseClient client = NodewiseClient.connect(server.target())) {
      CompletableFuture<PredictResponse> answer = client.async().predict(QUESTION);
      arrived.get(10, TimeUnit.SECONDS);
      answer.cancel(true);
      assertTrue(server.cancelled.await(10, TimeUnit.SECONDS));
      assertThrows(CancellationException.class, answer::join);
    }
  }

  @Test
  void anInterruptEndsTheCallOfItsThread() throws Exception {
    CompletableFuture<Void> arrived = new CompletableFuture<>();
    try (FakeServer server = predicting((request, sink) -> arrived.complete(null));
        NodewiseClient client = NodewiseClient.connect(server.target())) {
      CompletableFuture<NodewiseException> ended = new CompletableFuture<>();
      Thread caller = new Thread(() -> ended.complete(failure(client)));
      caller.start();
      arrived.get(10, TimeUnit.SECONDS);
      caller.interrupt();
      assertEquals(Status.Code.CANCELLED, ended.get(10, TimeUnit.SECONDS).code());
      assertTrue(server.cancelled.await(10, TimeUnit.SECONDS));
    }
  }

  @Test
  void anAppendHasAnIdOfItsOwn() {
    try (FakeServer server =
            new FakeServer(
                ProfileServiceGrpc.getAppendProfileMethod(),
                (request, sink) ->
                    FakeServer.reply(sink, AppendProfileResponse.getDefaultInstance()));
        NodewiseClient client = NodewiseClient.connect(server.target())) {
      client.appendProfile(AppendProfileRequest.newBuilder().setProfileId("a/b").build());
      client.appendProfile(
          AppendProfileRequest.newBuilder().setProfileId("a/b").setRequestId("mine").build());
      assertEquals(36, ((AppendProfileRequest) server.requests.get(0)).getRequestId().length());
      assertEquals("mine", ((AppendProfileRequest) server.requests.get(1)).getRequestId());
    }
  }

  @Test
  void pagesAreAskedForAsTheyAreRead() {
    try (FakeServer server =
            new FakeServer(
                PredictionServiceGrpc.getListDevicesMethod(),
                (request, sink) -> {
                  int page =
                      request.getPageToken().isEmpty()
                          ? 0
                          : Integer.parseInt(request.getPageToken());
                  FakeServer.reply(
                      sink,
                      ListDevicesResponse.newBuilder()
                          .addDevices(Device.newBuilder().setName("d" + page))
                          .setNextPageToken(page == 2 ? "" : String.valueOf(page + 1))
                          .build());
                });
        NodewiseClient client = NodewiseClient.connect(server.target())) {
      Pages<Device, ListDevicesResponse> devices =
          client.listDevices(ListDevicesRequest.getDefaultInstance());
      assertEquals("d0", devices.iterator().next().getName());
      assertEquals(1, server.requests.size());
      List<String> names = new ArrayList<>();
      devices.forEach(device -> names.add(device.getName()));
      assertEquals(List.of("d0", "d1", "d2"), names);
      assertEquals(3, devices.stream().count());
    }
  }

  private static NodewiseException failure(NodewiseClient client) {
    return assertThrows(NodewiseException.class, () -> client.predict(QUESTION));
  }
}
