package io.github.nodewise;

import com.google.protobuf.Message;
import io.github.nodewise.ServiceConfig.RetryPolicy;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.ConnectivityState;
import io.grpc.Context;
import io.grpc.Deadline;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.StreamObserver;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Predicate;

/** How the clients call: deadlines, what went wrong, streams, and their new beginnings. */
final class Calls {
  private static final Duration KNOCK_FIRST = Duration.ofMillis(100);
  private static final Duration KNOCK_LATER = Duration.ofSeconds(1);

  final ManagedChannel managed;
  final Channel channel;
  final boolean retry;
  private final String target;
  private final Duration defaultTimeout;
  private final Duration timeout;

  /**
   * Make it.
   *
   * @param defaultTimeout of unary calls; null = as the service config says
   * @param timeout of every call, before anything else; null = not stated
   */
  Calls(
      ManagedChannel managed,
      Channel channel,
      String target,
      boolean retry,
      Duration defaultTimeout,
      Duration timeout) {
    this.managed = managed;
    this.channel = channel;
    this.target = target;
    this.retry = retry;
    this.defaultTimeout = defaultTimeout;
    this.timeout = timeout;
  }

  Calls withTimeout(Duration stated) {
    return new Calls(managed, channel, target, retry, defaultTimeout, stated);
  }

  /** A server that comes back is found at once: by itself gRPC would wait longer and longer. */
  void seekServer() {
    ConnectivityState state = managed.getState(false);
    if (state == ConnectivityState.TRANSIENT_FAILURE) {
      knock(KNOCK_FIRST);
    } else if (state != ConnectivityState.SHUTDOWN) {
      managed.notifyWhenStateChanged(state, this::seekServer);
    }
  }

  private void knock(Duration pause) {
    later(
        pause,
        () -> {
          if (managed.getState(false) == ConnectivityState.TRANSIENT_FAILURE) {
            managed.resetConnectBackoff();
            Duration doubled = pause.multipliedBy(2);
            knock(doubled.compareTo(KNOCK_LATER) < 0 ? doubled : KNOCK_LATER);
          } else {
            seekServer();
          }
        });
  }

  // --- one request, one reply ------------------------------------------------------------------

  <Q, R> R blocking(MethodDescriptor<Q, R> method, Q request) {
    try {
      return ClientCalls.blockingUnaryCall(channel, method, options(method), request);
    } catch (StatusRuntimeException failure) {
      throw explained(failure.getStatus(), failure.getTrailers(), method, failure);
    }
  }

  <Q, R> CallFuture<R> future(MethodDescriptor<Q, R> method, Q request) {
    CallFuture<R> future = new CallFuture<>();
    ClientCall<Q, R> call = channel.newCall(method, options(method));
    future.runs(call);
    ClientCalls.asyncUnaryCall(
        call,
        request,
        new StreamObserver<R>() {
          @Override
          public void onNext(R reply) {
            future.complete(reply);
          }

          @Override
          public void onError(Throwable failure) {
            StatusRuntimeException told = (StatusRuntimeException) failure;
            future.completeExceptionally(
                explained(told.getStatus(), told.getTrailers(), method, told));
          }

          @Override
          public void onCompleted() {}
        });
    return future;
  }

  /** Wait for a future as a blocking call does; an interrupt cancels it. */
  static <T> T await(CompletableFuture<T> future) {
    try {
      return future.get();
    } catch (ExecutionException failure) {
      if (failure.getCause() instanceof NodewiseException error) {
        throw error;
      }
      throw new CompletionException(failure.getCause());
    } catch (InterruptedException interrupted) {
      future.cancel(true);
      Thread.currentThread().interrupt();
      throw NodewiseException.of(Status.Code.CANCELLED, "interrupted while waiting", interrupted);
    }
  }

  // --- streams ---------------------------------------------------------------------------------

  /**
   * Ask over one stream. Requests are sent from a thread of their own, as the server takes them.
   */
  <Q, R> CallFuture<Void> exchange(
      MethodDescriptor<Q, R> method, Iterable<Q> requests, Consumer<R> onReply) {
    CallFuture<Void> future = new CallFuture<>();
    Sender sender = new Sender();
    ClientCall<Q, R> call =
        open(method, deadline(), future, sender, onReply, error -> ended(future, sender, error));
    Thread thread =
        new Thread(
            () -> {
              try {
                for (Q request : requests) {
                  if (!sender.mayWrite(call)) {
                    return;
                  }
                  call.sendMessage(request);
                }
                call.halfClose();
              } catch (Throwable failure) {
                future.completeExceptionally(failure);
                call.cancel("the requests ended with an error", failure);
              }
            },
            "nodewise-requests");
    thread.setDaemon(true);
    thread.start();
    return future;
  }

  private static void ended(CallFuture<Void> future, Sender sender, NodewiseException error) {
    sender.stop();
    if (error == null) {
      future.complete(null);
    } else {
      future.completeExceptionally(error);
    }
  }

  /** Which messages of a long call are its progress, which its result, and what they hold. */
  record Shape<R, P, A>(
      Predicate<R> isProgress,
      Function<R, P> progress,
      Predicate<R> isResult,
      Function<R, A> result) {}

  /**
   * What a stream of progress ends with. It changes nothing: where it was cut, it is begun again,
   * as often as the service config says.
   */
  <Q extends Message, R, P, A> CallFuture<LongAnswer<R, A>> longCall(
      MethodDescriptor<Q, R> method, Q request, Shape<R, P, A> shape, Consumer<P> onProgress) {
    CallFuture<LongAnswer<R, A>> future = new CallFuture<>();
    Deadline end = deadline();
    Deadline whole = end != null ? end : after(ServiceConfig.SHARED.timeout(method));
    attempt(method, request, shape, onProgress, future, whole, 1);
    return future;
  }

  private <Q extends Message, R, P, A> void attempt(
      MethodDescriptor<Q, R> method,
      Q request,
      Shape<R, P, A> shape,
      Consumer<P> onProgress,
      CallFuture<LongAnswer<R, A>> future,
      Deadline whole,
      int number) {
    List<R> messages = new ArrayList<>();
    boolean[] heard = {false};
    ask(
        method,
        request,
        whole,
        future,
        message -> {
          heard[0] = true;
          if (!shape.isProgress.test(message)) {
            messages.add(message);
          } else if (onProgress != null) {
            onProgress.accept(shape.progress.apply(message));
          }
        },
        error -> {
          R last = messages.isEmpty() ? null : messages.get(messages.size() - 1);
          RetryPolicy policy = ServiceConfig.SHARED.policy(method);
          // gRPC itself tries again what was cut before its first message.
          if (error != null && heard[0] && mayRestart(error, policy, number)) {
            Duration pause = policy.pause(number, error.retryDelay().orElse(Duration.ZERO));
            if (pause.toNanos() < whole.timeRemaining(TimeUnit.NANOSECONDS)) {
              later(
                  pause,
                  () -> attempt(method, request, shape, onProgress, future, whole, number + 1));
              return;
            }
          }
          if (error != null) {
            future.completeExceptionally(error);
          } else if (last == null || !shape.isResult.test(last)) {
            String message = "the server ended " + method.getBareMethodName() + " without a result";
            future.completeExceptionally(NodewiseException.of(Status.Code.INTERNAL, message, null));
          } else {
            future.complete(new LongAnswer<>(shape.result.apply(last), List.copyOf(messages)));
          }
        });
  }

  private boolean mayRestart(NodewiseException error, RetryPolicy policy, int attempts) {
    return retry
        && policy != null
        && !managed.isShutdown()
        && attempts < policy.maxAttempts()
        && policy.codes().contains(error.code());
  }

  /**
   * A stream without end. If it is interrupted, it starts again within the limits of the policy.
   *
   * @param onceAwaited does what follows an end: at once, or when the caller waits for more
   */
  <Q extends Message, R> CallFuture<Void> watch(
      MethodDescriptor<Q, R> method,
      Q request,
      ResumePolicy policy,
      Consumer<R> onReply,
      Executor onceAwaited) {
    CallFuture<Void> future = new CallFuture<>();
    watch(method, request, deadline(), future, new Restarts(policy), onReply, onceAwaited);
    return future;
  }

  private <Q extends Message, R> void watch(
      MethodDescriptor<Q, R> method,
      Q request,
      Deadline whole,
      CallFuture<Void> future,
      Restarts restarts,
      Consumer<R> onReply,
      Executor onceAwaited) {
    Runnable again = () -> watch(method, request, whole, future, restarts, onReply, onceAwaited);
    ask(
        method,
        request,
        whole,
        future,
        message -> {
          restarts.heard();
          onReply.accept(message);
        },
        error -> onceAwaited.execute(() -> watchEnded(error, whole, future, restarts, again)));
  }

  private void watchEnded(
      NodewiseException error,
      Deadline whole,
      CallFuture<Void> future,
      Restarts restarts,
      Runnable again) {
    boolean over = !retry || managed.isShutdown() || (whole != null && whole.isExpired());
    Duration pause = over ? null : restarts.pause(error);
    if (pause != null) {
      later(pause, again);
    } else if (error != null) {
      future.completeExceptionally(error);
    } else if (over) {
      future.complete(null);
    } else {
      String message = "the server ended the watch repeatedly without a reply";
      future.completeExceptionally(NodewiseException.of(Status.Code.UNAVAILABLE, message, null));
    }
  }

  private <Q, R> void ask(
      MethodDescriptor<Q, R> method,
      Q request,
      Deadline whole,
      CallFuture<?> future,
      Consumer<R> onReply,
      Consumer<NodewiseException> onEnd) {
    if (future.isDone()) {
      return;
    }
    ClientCall<Q, R> call = open(method, whole, future, new Sender(), onReply, onEnd);
    call.sendMessage(request);
    call.halfClose();
  }

  private <Q, R> ClientCall<Q, R> open(
      MethodDescriptor<Q, R> method,
      Deadline whole,
      CallFuture<?> future,
      Sender sender,
      Consumer<R> onReply,
      Consumer<NodewiseException> onEnd) {
    boolean endless = method.getType() == MethodDescriptor.MethodType.SERVER_STREAMING;
    Deadline deadline = whole != null || endless ? whole : after(timeoutOf(method));
    ClientCall<Q, R> call = channel.newCall(method, CallOptions.DEFAULT.withDeadline(deadline));
    call.start(
        new ClientCall.Listener<R>() {
          @Override
          public void onReady() {
            sender.wake();
          }

          @Override
          public void onMessage(R message) {
            try {
              onReply.accept(message);
              call.request(1);
            } catch (Throwable failure) {
              future.completeExceptionally(failure);
              call.cancel("the reader failed", failure);
            }
          }

          @Override
          public void onClose(Status status, Metadata trailers) {
            onEnd.accept(status.isOk() ? null : explained(status, trailers, method, null));
          }
        },
        new Metadata());
    call.request(1);
    future.runs(call);
    return call;
  }

  /** Blocks the sender until the server accepts more. */
  private static final class Sender {
    private boolean stopped;

    synchronized void wake() {
      notifyAll();
    }

    synchronized void stop() {
      stopped = true;
      notifyAll();
    }

    synchronized boolean mayWrite(ClientCall<?, ?> call) throws InterruptedException {
      while (!stopped && !call.isReady()) {
        wait();
      }
      return !stopped;
    }
  }

  // --- deadlines and errors --------------------------------------------------------------------

  private CallOptions options(MethodDescriptor<?, ?> method) {
    return CallOptions.DEFAULT.withDeadlineAfter(timeoutOf(method).toNanos(), TimeUnit.NANOSECONDS);
  }

  private Duration timeoutOf(MethodDescriptor<?, ?> method) {
    if (timeout != null) {
      return timeout;
    }
    boolean unary = method.getType() == MethodDescriptor.MethodType.UNARY;
    return unary && defaultTimeout != null ? defaultTimeout : ServiceConfig.SHARED.timeout(method);
  }

  private Deadline deadline() {
    return timeout == null ? null : after(timeout);
  }

  private static Deadline after(Duration time) {
    return Deadline.after(time.toNanos(), TimeUnit.NANOSECONDS);
  }

  private NodewiseException explained(
      Status status, Metadata trailers, MethodDescriptor<?, ?> method, Throwable cause) {
    return NodewiseException.of(status, trailers, target, method.getBareMethodName(), cause);
  }

  static void later(Duration pause, Runnable work) {
    CompletableFuture.delayedExecutor(pause.toNanos(), TimeUnit.NANOSECONDS)
        .execute(Context.ROOT.wrap(work));
  }
}
