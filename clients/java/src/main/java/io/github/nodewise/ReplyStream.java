package io.github.nodewise;

import io.grpc.Status;
import java.util.ArrayDeque;
import java.util.Iterator;
import java.util.NoSuchElementException;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.function.BiFunction;
import java.util.function.Consumer;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;

/**
 * Messages of a stream, read once and in order. Reading waits for the next message and throws
 * {@link NodewiseException} where the stream failed; closing ends the call. Not read, it holds a
 * few messages and then holds up the server.
 *
 * @param <T> messages
 */
public final class ReplyStream<T> implements Iterable<T>, Iterator<T>, AutoCloseable {
  private static final int HELD = 16;

  private final ArrayDeque<T> held = new ArrayDeque<>();
  private final CompletableFuture<Void> call;
  private boolean ended;
  private boolean closed;
  private Throwable failure;
  private Runnable onceAwaited;

  /**
   * Starts a call.
   *
   * @param start given what takes the messages, and what does work in the reader's thread once it
   *     waits for more than there is
   */
  ReplyStream(BiFunction<Consumer<T>, Executor, CompletableFuture<Void>> start) {
    call = start.apply(this::put, this::onceAwaited);
    call.whenComplete((nothing, error) -> end(error));
  }

  @Override
  public Iterator<T> iterator() {
    return this;
  }

  /**
   * The messages that are still to come.
   *
   * @return them, in order
   */
  public Stream<T> stream() {
    return StreamSupport.stream(spliterator(), false);
  }

  @Override
  public synchronized boolean hasNext() {
    while (held.isEmpty() && !ended && !closed) {
      if (onceAwaited != null) {
        Runnable work = onceAwaited;
        onceAwaited = null;
        work.run();
        continue;
      }
      try {
        wait();
      } catch (InterruptedException interrupted) {
        Thread.currentThread().interrupt();
        close();
        throw NodewiseException.of(Status.Code.CANCELLED, "interrupted while reading", interrupted);
      }
    }
    if (!held.isEmpty() && !closed) {
      return true;
    }
    if (failure instanceof RuntimeException error && !closed) {
      throw error;
    }
    if (failure != null && !closed) {
      throw new IllegalStateException(failure);
    }
    return false;
  }

  @Override
  public synchronized T next() {
    if (!hasNext()) {
      throw new NoSuchElementException();
    }
    T message = held.remove();
    notifyAll();
    return message;
  }

  @Override
  public void close() {
    synchronized (this) {
      closed = true;
      notifyAll();
    }
    call.cancel(true);
  }

  /** Called where gRPC delivers: while it waits here, the server is held up. */
  private synchronized void put(T message) {
    while (held.size() >= HELD && !closed) {
      try {
        wait();
      } catch (InterruptedException interrupted) {
        Thread.currentThread().interrupt();
        throw new CancellationException("interrupted");
      }
    }
    held.add(message);
    notifyAll();
  }

  private synchronized void onceAwaited(Runnable work) {
    onceAwaited = work;
    notifyAll();
  }

  private synchronized void end(Throwable error) {
    ended = true;
    failure = error instanceof CancellationException ? null : error;
    notifyAll();
  }
}
