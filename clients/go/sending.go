package nodewise

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"

	nodewisev1 "github.com/nodewise/nodewise/clients/go/gen/nodewise/v1"
)

// run sends batch after batch, until the context ends or going on does not help.
func (w *IngestWriter) run(ctx context.Context) {
	defer close(w.ended)
	for {
		batch := w.next(ctx)
		if batch == nil {
			w.fail(&Error{Code: codes.Canceled, Message: "the ingest writer was closed", cause: ctx.Err()})
			return
		}
		state, err := w.send(ctx, batch, w.patience)
		if err == nil {
			err = w.acknowledge(state, batch.GetSequenceNumber())
		}
		if err != nil {
			w.fail(err)
			return
		}
	}
}

// next waits for the next batch; nil = the writer was closed.
func (w *IngestWriter) next(ctx context.Context) *nodewisev1.ProfileBatch {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for ctx.Err() == nil {
		var due <-chan time.Time
		if len(w.queue) == 0 && !w.since.IsZero() {
			left := w.linger - time.Since(w.since)
			if left <= 0 {
				w.seal()
			} else {
				due = time.After(left)
			}
		}
		if len(w.queue) > 0 {
			return w.queue[0]
		}
		changed := w.changed
		w.mutex.Unlock()
		select {
		case <-changed:
		case <-due:
		case <-ctx.Done():
		}
		w.mutex.Lock()
	}
	return nil
}

// send sends one batch, or asks how far the session is (nil), and goes on until it is answered, refused, or patience is at its end.
func (w *IngestWriter) send(ctx context.Context, batch *nodewisev1.ProfileBatch, limit time.Duration) (*nodewisev1.IngestState, error) {
	request := &nodewisev1.IngestBatchRequest{ProfileId: w.profileID, SessionId: w.sessionID, Batch: batch}
	begin := time.Now()
	for attempt := 1; ; attempt++ {
		bounded, cancel := context.WithTimeout(ctx, min(answerTimeout, w.client.timeoutOf(nodewisev1.ProfileService_IngestBatch_FullMethodName)))
		reply, err := w.client.IngestBatch(bounded, request)
		cancel()
		if err == nil {
			return reply.GetState(), nil
		}
		var failure *Error
		errors.As(err, &failure)
		// A server that is overloaded says when to come back; one that says nothing will refuse again.
		again := resumable(failure) || (failure.Code == codes.ResourceExhausted && failure.hasDelay)
		pause := resuming.pause(attempt, failure)
		if !w.client.retry || ctx.Err() != nil || !again || attempt >= resuming.attempts || time.Since(begin)+pause > limit || !sleep(ctx, pause) {
			return nil, err
		}
	}
}

// acknowledge takes in what the server says after a batch.
func (w *IngestWriter) acknowledge(state *nodewisev1.IngestState, number int64) error {
	durable := state.GetDurableSequenceNumber()
	if durable != number {
		words := "another writer uses the same session; give every writer a session of its own"
		code := codes.Aborted
		if durable < number {
			words, code = "batches that it acknowledged before are lost", codes.DataLoss
		}
		return &Error{Code: code, Message: fmt.Sprintf("after batch %d session %s holds batch %d: %s", number, w.sessionID, durable, words)}
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.queue, w.state = w.queue[1:], state
	w.wake()
	return nil
}

func (w *IngestWriter) fail(err error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.failure == nil {
		w.failure = err
	}
	w.wake()
}
