package nodewise

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	nodewisev1 "github.com/nodewise/nodewise/clients/go/gen/nodewise/v1"
)

const (
	batchRows  = 1000
	linger     = 100 * time.Millisecond
	chunkBytes = 512 << 10 // of a trace: well below what a message may have
	// How long an answer to one batch is awaited before it is sent again; the server knows it by its number.
	answerTimeout = 10 * time.Second
)

// ErrUncommitted is what [IngestWriter.Close] says where something was written since the last commit: it does not count.
var ErrUncommitted = errors.New("nodewise: the ingest writer was closed before what it wrote was committed")

// IngestWriter writes one session into a profile; see [Client.Ingest]. Several goroutines may use it.
//
// Rows are sent in batches of 1,000 or after 100 ms, whichever comes first, one batch at a time, in order. What is not acknowledged is kept,
// in a bounded buffer, and sent again under the same number when the server comes back: nothing is lost, nothing counts twice. When the
// buffer is full, calls wait. Nothing counts before [IngestWriter.Commit].
type IngestWriter struct {
	client    *Client
	profileID string
	sessionID string
	rows      int           // of a batch, at most
	linger    time.Duration // until what is pending must go
	buffered  int           // batches that may wait to be acknowledged
	patience  time.Duration
	cancel    context.CancelFunc
	ended     chan struct{} // closed when nothing is sent any more
	mutex     sync.Mutex
	changed   chan struct{} // closed, and replaced, at every change below
	pending   *nodewisev1.ProfileBatch
	since     time.Time // when the first of what is pending was added; zero = nothing is
	count     int       // pending rows
	queue     []*nodewisev1.ProfileBatch
	last      int64 // number of the last batch that was queued
	commit    int64 // number of the last batch that commits
	state     *nodewisev1.IngestState
	failure   error
}

// IngestOption changes an ingest writer.
type IngestOption func(*IngestWriter)

// WithSession goes on with the session of an earlier process, after what is durable of it. One writer at a time may use a session. The
// default is a new one.
func WithSession(sessionID string) IngestOption {
	return func(w *IngestWriter) { w.sessionID = sessionID }
}

// WithBatching sets how many rows a batch has at most (default 1,000), after how long rows are sent that are fewer (100 ms), and how many batches
// may wait to be acknowledged (64).
func WithBatching(rows int, linger time.Duration, buffered int) IngestOption {
	return func(w *IngestWriter) { w.rows, w.linger, w.buffered = max(rows, 1), linger, max(buffered, 1) }
}

// WithPatience sets how long the writer goes on without anything being acknowledged before it gives up; the default is 30 s.
func WithPatience(patience time.Duration) IngestOption {
	return func(w *IngestWriter) { w.patience = patience }
}

// Committed is a profile after a commit.
type Committed struct {
	// Revision of the profile.
	Revision int64
	// ObservationsCount are the observations that count in it.
	ObservationsCount int32
	// SequenceNumber of the last batch that is part of it.
	SequenceNumber int64
}

// Ingest opens a writer into a profile, which is created if it does not exist. The writer ends with the context; close it in any case.
//
//	writer, err := client.Ingest(ctx, "team-a/run-2")
//	if err != nil { ... }
//	defer writer.Close()
func (c *Client) Ingest(ctx context.Context, profileID string, options ...IngestOption) (*IngestWriter, error) {
	w := &IngestWriter{
		client: c, profileID: profileID, sessionID: rand.Text(), rows: batchRows, linger: linger, buffered: 64, patience: patience,
		ended: make(chan struct{}), changed: make(chan struct{}),
		pending: &nodewisev1.ProfileBatch{}, state: &nodewisev1.IngestState{},
	}
	for _, option := range options {
		option(w)
	}
	ctx, w.cancel = context.WithCancel(ctx)
	state, err := w.send(ctx, nil, min(w.patience, openingPatience))
	if err != nil {
		w.cancel()
		return nil, err
	}
	w.state, w.last, w.commit = state, state.GetDurableSequenceNumber(), state.GetCommittedSequenceNumber()
	go w.run(ctx)
	return w, nil
}

// ProfileID is the profile that is written to.
func (w *IngestWriter) ProfileID() string { return w.profileID }

// SessionID is the session; [WithSession] goes on with it.
func (w *IngestWriter) SessionID() string { return w.sessionID }

// DurableSequenceNumber is the number of the last batch that the server holds durably together with all before it.
func (w *IngestWriter) DurableSequenceNumber() int64 {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.state.GetDurableSequenceNumber()
}

// Observe adds measured runs. They are copied.
func (w *IngestWriter) Observe(ctx context.Context, observations *nodewisev1.Observations) error {
	return add(ctx, w, observations, func(batch *nodewisev1.ProfileBatch) **nodewisev1.Observations { return &batch.Observations })
}

// Phases adds timed phases. They are copied.
func (w *IngestWriter) Phases(ctx context.Context, timings *nodewisev1.PhaseTimings) error {
	return add(ctx, w, timings, func(batch *nodewisev1.ProfileBatch) **nodewisev1.PhaseTimings { return &batch.PhaseTimings })
}

func add[T any, M interface {
	*T
	proto.Message
}](ctx context.Context, w *IngestWriter, message M, in func(*nodewisev1.ProfileBatch) *M) error {
	rows := rowsCount(message.ProtoReflect())
	if err := checkRows(message.ProtoReflect(), rows); err != nil {
		return err
	}
	for _, piece := range cut(message, rows, w.rows) {
		more := min(rows, w.rows)
		rows -= more
		err := w.change(ctx, func() {
			held := *in(w.pending)
			if w.count+more > w.rows || (held != nil && !joinable(held.ProtoReflect(), piece.ProtoReflect())) {
				w.seal()
			}
			target := in(w.pending)
			if *target == nil {
				*target = new(T)
			}
			appendRows((*target).ProtoReflect(), piece.ProtoReflect(), 0, more)
			w.count += more
			w.touch()
			if w.count >= w.rows {
				w.seal()
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Facts adds facts of the workload or of the network; nil = none. Facts already known must agree. They must not be changed afterwards.
func (w *IngestWriter) Facts(ctx context.Context, workload *nodewisev1.Workload, network *nodewisev1.Network) error {
	return w.change(ctx, func() {
		if (workload != nil && w.pending.Workload != nil) || (network != nil && w.pending.Network != nil) {
			w.seal()
		}
		if workload != nil {
			w.pending.Workload = workload
		}
		if network != nil {
			w.pending.Network = network
		}
		if workload != nil || network != nil {
			w.touch()
		}
	})
}

// Write adds a batch as it is, whatever it holds, after what is pending; its number is given here. It must not be changed afterwards.
func (w *IngestWriter) Write(ctx context.Context, batch *nodewisev1.ProfileBatch) error {
	return w.change(ctx, func() {
		w.seal()
		w.enqueue(shallow(batch))
	})
}

// Trace adds a trace, read to its end: best compressed with gzip, its paths and names taken out. `first` says what it is: trace_id (one per
// trace and session), format (e.g. "kineto"), rank and world_size.
func (w *IngestWriter) Trace(ctx context.Context, source io.Reader, first *nodewisev1.TraceChunk) error {
	reader := bufio.NewReaderSize(source, chunkBytes)
	chunk := shallow(first)
	for offset := int64(0); !chunk.GetLast(); {
		data := make([]byte, chunkBytes)
		read, err := io.ReadFull(reader, data)
		if err == nil {
			_, err = reader.Peek(1)
		}
		chunk.Last = errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !chunk.Last {
			return err
		}
		if read == 0 {
			return invalid("data", "is empty: trace "+first.GetTraceId()+" has no bytes")
		}
		chunk.OffsetBytes, chunk.Data = offset, data[:read]
		if err := w.Write(ctx, &nodewisev1.ProfileBatch{TraceChunks: []*nodewisev1.TraceChunk{chunk}}); err != nil {
			return err
		}
		offset += int64(read)
		chunk = &nodewisev1.TraceChunk{TraceId: first.GetTraceId(), Last: chunk.GetLast()}
	}
	return nil
}

// Flush sends what waits, until it is durable; it gives the durable number. It counts after a commit only.
func (w *IngestWriter) Flush(ctx context.Context) (int64, error) {
	var number int64
	if err := w.change(ctx, func() { w.seal(); number = w.last }); err != nil {
		return 0, err
	}
	state, err := w.wait(ctx, func() bool { return w.state.GetDurableSequenceNumber() >= number })
	return state.GetDurableSequenceNumber(), err
}

// Commit makes everything added so far count: it waits until that is durable and part of the profile's revision. Where the context ends
// before, it may be called again: the same commit is then awaited. With nothing to commit it answers what is known.
func (w *IngestWriter) Commit(ctx context.Context) (Committed, error) {
	var number int64
	err := w.change(ctx, func() {
		if w.since.IsZero() && w.commit == w.last {
			number = w.commit
			return
		}
		w.pending.Commit = true
		w.enqueue(w.take())
		number = w.last
	})
	if err != nil {
		return Committed{}, err
	}
	state, err := w.wait(ctx, func() bool { return w.state.GetCommittedSequenceNumber() >= number })
	return Committed{state.GetRevision(), state.GetObservationsCount(), state.GetCommittedSequenceNumber()}, err
}

// Close ends the writer. It commits nothing: where something was written since the last commit, it gives [ErrUncommitted].
func (w *IngestWriter) Close() error {
	w.mutex.Lock()
	failure := w.failure
	w.mutex.Unlock()
	w.cancel()
	<-w.ended
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.since.IsZero() && w.last <= w.state.GetCommittedSequenceNumber() {
		return nil
	}
	return cmp.Or(failure, ErrUncommitted)
}

// change does something to what is pending, once there is room and unless the writer has failed; it wakes the sender.
func (w *IngestWriter) change(ctx context.Context, do func()) error {
	_, err := w.wait(ctx, func() bool {
		if len(w.queue) >= w.buffered {
			return false
		}
		do()
		w.wake()
		return true
	})
	return err
}

// wait waits until something holds, the writer has failed, or the context ends.
func (w *IngestWriter) wait(ctx context.Context, done func() bool) (*nodewisev1.IngestState, error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for {
		if w.failure != nil {
			return w.state, w.failure
		}
		if done() {
			return w.state, nil
		}
		changed := w.changed
		w.mutex.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		w.mutex.Lock()
		if ctx.Err() != nil {
			return w.state, w.client.explained(ctx, ctx.Err(), nil, nodewisev1.ProfileService_IngestBatch_FullMethodName)
		}
	}
}

func (w *IngestWriter) wake() {
	close(w.changed)
	w.changed = make(chan struct{})
}

func (w *IngestWriter) touch() {
	if w.since.IsZero() {
		w.since = time.Now()
	}
}

func (w *IngestWriter) take() *nodewisev1.ProfileBatch {
	batch := w.pending
	w.pending, w.since, w.count = &nodewisev1.ProfileBatch{}, time.Time{}, 0
	return batch
}

// seal numbers what is pending, if anything is, and queues it.
func (w *IngestWriter) seal() {
	if !w.since.IsZero() {
		w.enqueue(w.take())
	}
}

func (w *IngestWriter) enqueue(batch *nodewisev1.ProfileBatch) {
	w.last++
	batch.SequenceNumber = w.last
	if batch.GetCommit() {
		w.commit = w.last
	}
	w.queue = append(w.queue, batch)
}
