package io.github.nodewise;

import io.grpc.ClientCall;
import java.util.concurrent.CompletableFuture;

/** A future whose cancelling ends the call behind it. */
final class CallFuture<T> extends CompletableFuture<T> {
  private ClientCall<?, ?> call;

  /** Take this call as the one that runs by now. */
  synchronized void runs(ClientCall<?, ?> started) {
    call = started;
    if (isDone()) {
      end();
    }
  }

  /** End the call, whatever the future says. */
  synchronized void end() {
    if (call != null) {
      call.cancel("cancelled by the caller", null);
    }
  }

  @Override
  public boolean cancel(boolean mayInterruptIfRunning) {
    boolean cancelled = super.cancel(mayInterruptIfRunning);
    end();
    return cancelled;
  }
}
