package io.github.nodewise;

import com.google.protobuf.Any;
import com.google.protobuf.Message;
import com.google.rpc.BadRequest;
import com.google.rpc.ErrorInfo;
import com.google.rpc.RetryInfo;
import io.grpc.Grpc;
import io.grpc.InsecureServerCredentials;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Server;
import io.grpc.ServerCall;
import io.grpc.ServerCallHandler;
import io.grpc.ServerServiceDefinition;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.protobuf.StatusProto;
import io.grpc.stub.ServerCallStreamObserver;
import io.grpc.stub.ServerCalls;
import java.io.IOException;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.function.BiConsumer;

/** A server on loopback of the methods that a test gives it, which notes what arrives. */
final class FakeServer implements AutoCloseable {
  final List<Metadata> headers = new CopyOnWriteArrayList<>();
  final List<Message> requests = new CopyOnWriteArrayList<>();
  final CountDownLatch cancelled = new CountDownLatch(1);
  private final Server server;

  /** A server of one method, with one reply or many. */
  <Q extends Message, R extends Message> FakeServer(
      MethodDescriptor<Q, R> method, BiConsumer<Q, ServerCallStreamObserver<R>> answer) {
    BiConsumer<Q, io.grpc.stub.StreamObserver<R>> noted =
        (request, sink) -> {
          requests.add(request);
          ServerCallStreamObserver<R> replies = (ServerCallStreamObserver<R>) sink;
          replies.setOnCancelHandler(cancelled::countDown);
          answer.accept(request, replies);
        };
    ServerCallHandler<Q, R> handler =
        method.getType() == MethodDescriptor.MethodType.UNARY
            ? ServerCalls.asyncUnaryCall(noted::accept)
            : ServerCalls.asyncServerStreamingCall(noted::accept);
    ServerServiceDefinition service =
        ServerServiceDefinition.builder(method.getServiceName())
            .addMethod(method, (call, sent) -> noting(call, sent, handler))
            .build();
    try {
      server =
          Grpc.newServerBuilderForPort(0, InsecureServerCredentials.create())
              .addService(service)
              .build()
              .start();
    } catch (IOException fault) {
      throw new IllegalStateException(fault);
    }
  }

  private <Q, R> ServerCall.Listener<Q> noting(
      ServerCall<Q, R> call, Metadata sent, ServerCallHandler<Q, R> handler) {
    headers.add(sent);
    return handler.startCall(call, sent);
  }

  String target() {
    return "127.0.0.1:" + server.getPort();
  }

  /** What a header of a call said; null = nothing. */
  String header(int call, String name) {
    return headers.get(call).get(Metadata.Key.of(name, Metadata.ASCII_STRING_MARSHALLER));
  }

  /** An error as the server tells it. */
  static StatusRuntimeException refusal(
      Status.Code code, String reason, String field, int retryAfterSeconds) {
    var status = com.google.rpc.Status.newBuilder().setCode(code.value()).setMessage("no");
    ErrorInfo info =
        ErrorInfo.newBuilder()
            .setDomain("nodewise")
            .setReason(reason)
            .putMetadata("limit", "3")
            .build();
    status.addDetails(Any.pack(info));
    if (!field.isEmpty()) {
      var violation =
          BadRequest.FieldViolation.newBuilder().setField(field).setDescription("must be right");
      status.addDetails(Any.pack(BadRequest.newBuilder().addFieldViolations(violation).build()));
    }
    if (retryAfterSeconds > 0) {
      var delay = com.google.protobuf.Duration.newBuilder().setSeconds(retryAfterSeconds);
      status.addDetails(Any.pack(RetryInfo.newBuilder().setRetryDelay(delay).build()));
    }
    return StatusProto.toStatusRuntimeException(status.build());
  }

  static <R> void reply(ServerCallStreamObserver<R> sink, R message) {
    sink.onNext(message);
    sink.onCompleted();
  }

  @Override
  public void close() {
    server.shutdownNow();
  }
}
