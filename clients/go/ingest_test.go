package nodewise_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	nodewise "github.com/nodewise/nodewise/clients/go"
	nodewisev1 "github.com/nodewise/nodewise/clients/go/gen/nodewise/v1"
)

// session stores batches as the server does: each number once, in order; the same again changes nothing.
type session struct {
	mutex     sync.Mutex
	batches   []*nodewisev1.ProfileBatch
	committed int64
	revision  int64
	// before is asked first, with the number of the call and its batch (nil = only asks): an error refuses it; after that it is stored.
	before func(call int, batch *nodewisev1.ProfileBatch) error
	// after is asked when it is stored: an error takes the place of the answer.
	after    func(call int) error
	calls    int
	inFlight int
	overlaps bool
}

func (s *session) ingest(_ context.Context, r *nodewisev1.IngestBatchRequest) (*nodewisev1.IngestBatchResponse, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.calls++
	call, batch := s.calls, r.GetBatch()
	if s.before != nil {
		s.inFlight++
		s.overlaps = s.overlaps || s.inFlight > 1
		s.mutex.Unlock()
		err := s.before(call, batch)
		s.mutex.Lock()
		s.inFlight--
		if err != nil {
			return nil, err
		}
	}
	if batch != nil {
		switch number := int(batch.GetSequenceNumber()); {
		case number <= len(s.batches):
			if !proto.Equal(s.batches[number-1], batch) {
				return nil, refusal(codes.AlreadyExists, "another batch has this number", reason("BATCH_CONFLICT", nil))
			}
		case number != len(s.batches)+1:
			return nil, refusal(codes.FailedPrecondition, "a batch is missing before it", reason("BATCH_OUT_OF_ORDER", nil))
		default:
			s.batches = append(s.batches, batch)
			if batch.GetCommit() {
				s.committed = batch.GetSequenceNumber()
				s.revision++
			}
		}
	}
	if s.after != nil {
		if err := s.after(call); err != nil {
			return nil, err
		}
	}
	return &nodewisev1.IngestBatchResponse{State: &nodewisev1.IngestState{
		DurableSequenceNumber: int64(len(s.batches)), CommittedSequenceNumber: s.committed, Revision: s.revision,
	}}, nil
}

// nodes are those of all observations, in order.
func (s *session) nodes() (found []int32) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, batch := range s.batches {
		found = append(found, batch.GetObservations().GetConfigurations().GetNodes()...)
	}
	return found
}

func observed(nodes ...int32) *nodewisev1.Observations {
	rates := make([]float64, len(nodes))
	for i := range rates {
		rates[i] = 2.5
	}
	return &nodewisev1.Observations{Configurations: &nodewisev1.Configurations{Nodes: nodes, SyncModes: []nodewisev1.SyncMode{1}}, StepsPerSecond: rates}
}

func upTo(last int32) (numbers []int32) {
	for number := range last {
		numbers = append(numbers, number+1)
	}
	return numbers
}

func (s *session) writer(t testing.TB, options ...nodewise.IngestOption) (*nodewise.IngestWriter, *fake) {
	t.Helper()
	server := (&fake{ingest: s.ingest}).serve(t)
	writer, err := server.client(t).Ingest(t.Context(), "team-a/run", options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = writer.Close() })
	return writer, server
}

func TestRowsAreBatchedAndNumbered(t *testing.T) {
	store := &session{}
	writer, _ := store.writer(t, nodewise.WithBatching(10, time.Hour, 64))
	for number := range int32(25) {
		if err := writer.Observe(t.Context(), observed(number+1)); err != nil {
			t.Fatal(err)
		}
	}
	committed, err := writer.Commit(t.Context())
	if err != nil || committed.Revision != 1 || committed.SequenceNumber != 3 {
		t.Error(committed, err)
	}
	if !slices.Equal(store.nodes(), upTo(25)) || len(store.batches) != 3 || len(store.batches[2].GetObservations().GetConfigurations().GetSyncModes()) != 5 {
		t.Error(store.batches)
	}
	if again, err := writer.Commit(t.Context()); err != nil || again != committed {
		t.Error("with nothing to commit:", again, err)
	}
	if err := writer.Close(); err != nil {
		t.Error(err)
	}
}

func TestManyRowsAreCut(t *testing.T) {
	store := &session{}
	writer, _ := store.writer(t)
	if err := writer.Observe(t.Context(), observed(upTo(2500)...)); err != nil {
		t.Fatal(err)
	}
	if durable, err := writer.Flush(t.Context()); err != nil || durable != 3 {
		t.Error(durable, err)
	}
	if !slices.Equal(store.nodes(), upTo(2500)) || writer.DurableSequenceNumber() != 3 {
		t.Error(len(store.nodes()), writer.DurableSequenceNumber())
	}
	if err := writer.Close(); !errors.Is(err, nodewise.ErrUncommitted) {
		t.Error(err)
	}
	if err := writer.Observe(t.Context(), observed(1)); status.Code(err) != codes.Canceled {
		t.Error("after closing:", err)
	}
}

func TestRowsGoAfterTheirTime(t *testing.T) {
	stored := make(chan struct{})
	store := &session{after: func(call int) error {
		if call == 2 {
			close(stored)
		}
		return nil
	}}
	writer, _ := store.writer(t, nodewise.WithBatching(1000, time.Millisecond, 64))
	if err := writer.Observe(t.Context(), observed(1)); err != nil {
		t.Fatal(err)
	}
	<-stored
}

func TestOneBatchOfAllKinds(t *testing.T) {
	store := &session{}
	writer, _ := store.writer(t, nodewise.WithBatching(1000, time.Hour, 64))
	ctx := t.Context()
	timings := &nodewisev1.PhaseTimings{ComputeSeconds: []float64{1}, DownloadSeconds: []float64{1}, UploadSeconds: []float64{1}, UpdateSeconds: []float64{0}}
	for _, err := range []error{
		writer.Facts(ctx, &nodewisev1.Workload{ModelName: "a"}, nil), writer.Phases(ctx, timings), writer.Observe(ctx, observed(1)),
		writer.Facts(ctx, nil, &nodewisev1.Network{}),
		writer.Facts(ctx, &nodewisev1.Workload{ModelName: "b"}, nil), // another one: a batch of its own
		writer.Write(ctx, &nodewisev1.ProfileBatch{DisplayName: ptr("A run")}),
		writer.Trace(ctx, bytes.NewReader(make([]byte, 1<<20+1)), &nodewisev1.TraceChunk{TraceId: "rank0", Format: "kineto", Rank: ptr(int32(0))}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := writer.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	first := store.batches[0]
	if len(store.batches) != 7 || first.GetWorkload().GetModelName() != "a" || first.GetNetwork() == nil || len(first.GetPhaseTimings().GetComputeSeconds()) != 1 ||
		len(first.GetObservations().GetStepsPerSecond()) != 1 || store.batches[1].GetWorkload().GetModelName() != "b" || store.batches[2].GetDisplayName() != "A run" {
		t.Error(len(store.batches), first)
	}
	size, chunks := 0, store.batches[3:6]
	for i, batch := range chunks {
		chunk := batch.GetTraceChunks()[0]
		if chunk.GetOffsetBytes() != int64(size) || chunk.GetLast() != (i == len(chunks)-1) || (chunk.GetFormat() == "kineto") != (i == 0) || chunk.GetTraceId() != "rank0" {
			t.Error(i, chunk.GetOffsetBytes(), chunk.GetLast(), chunk.GetFormat())
		}
		size += len(chunk.GetData())
	}
	if size != 1<<20+1 {
		t.Error(size)
	}
	if err := writer.Trace(ctx, bytes.NewReader(nil), &nodewisev1.TraceChunk{TraceId: "rank1"}); status.Code(err) != codes.InvalidArgument {
		t.Error(err)
	}
}

// What the server did and the client never heard is not done twice; what it did not do is not lost.
func TestNothingIsLostAndNothingTwice(t *testing.T) {
	for name, c := range map[string]struct {
		before, after func(server *fake, call int) error
	}{
		"replies are lost": {after: func(server *fake, call int) error {
			if call%2 == 0 {
				server.cut()
			}
			return nil
		}},
		"connections are cut before": {before: func(server *fake, call int) error {
			if call%2 == 0 {
				server.cut()
				return status.Error(codes.Unavailable, "")
			}
			return nil
		}},
		"the store is away for longer than a call is tried": {before: func(_ *fake, call int) error {
			if call > 2 && call < 12 {
				return refusal(codes.Unavailable, "no store", reason("STORE_UNAVAILABLE", nil), retryAfter(time.Millisecond))
			}
			return nil
		}},
		"overloaded, with a time to come back": {before: func(_ *fake, call int) error {
			if call == 3 {
				return refusal(codes.ResourceExhausted, "full", reason("OVERLOADED", nil), retryAfter(10*time.Millisecond))
			}
			return nil
		}},
		"stopped after it was stored": {after: func(_ *fake, call int) error {
			if call%3 == 0 {
				return status.Error(codes.Canceled, "going away")
			}
			return nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, server := &session{}, &fake{}
			if c.before != nil {
				store.before = func(call int, _ *nodewisev1.ProfileBatch) error { return c.before(server, call) }
			}
			if c.after != nil {
				store.after = func(call int) error { return c.after(server, call) }
			}
			server.ingest = store.ingest
			writer, err := server.serve(t).client(t).Ingest(t.Context(), "a", nodewise.WithBatching(5, time.Hour, 2))
			if err != nil {
				t.Fatal(err)
			}
			for number := range int32(40) {
				if err := writer.Observe(t.Context(), observed(number+1)); err != nil {
					t.Fatal(err)
				}
			}
			if committed, err := writer.Commit(t.Context()); err != nil || committed.SequenceNumber != 9 {
				t.Fatal(committed, err)
			}
			if !slices.Equal(store.nodes(), upTo(40)) || store.overlaps {
				t.Error(store.nodes(), store.overlaps)
			}
			if err := writer.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestASessionOfAnEarlierProcessGoesOn(t *testing.T) {
	store := &session{batches: []*nodewisev1.ProfileBatch{{SequenceNumber: 1}, {SequenceNumber: 2}}}
	writer, _ := store.writer(t, nodewise.WithSession("mine"))
	if writer.DurableSequenceNumber() != 2 || writer.SessionID() != "mine" || writer.ProfileID() != "team-a/run" {
		t.Error(writer.DurableSequenceNumber(), writer.SessionID())
	}
	if committed, err := writer.Commit(t.Context()); err != nil || committed.SequenceNumber != 3 {
		t.Error("what the earlier one wrote is committed too:", committed, err)
	}
}

func TestWhatGoingOnDoesNotHelp(t *testing.T) {
	for name, c := range map[string]struct {
		store  *session
		reason string
		code   codes.Code
	}{
		"another writer": {&session{after: nil, before: nil, batches: nil}, "", codes.Aborted},
		"refused": {&session{before: func(call int, _ *nodewisev1.ProfileBatch) error {
			if call > 1 {
				return refusal(codes.InvalidArgument, "no", reason("INVALID_FIELD", nil))
			}
			return nil
		}}, "INVALID_FIELD", codes.InvalidArgument},
		"a quota": {&session{before: func(call int, _ *nodewisev1.ProfileBatch) error {
			if call > 1 {
				return refusal(codes.ResourceExhausted, "no", reason("QUOTA_EXCEEDED", nil))
			}
			return nil
		}}, "QUOTA_EXCEEDED", codes.ResourceExhausted},
		"away for longer than it is patient": {&session{before: func(call int, _ *nodewisev1.ProfileBatch) error {
			if call > 1 {
				return status.Error(codes.Unavailable, "")
			}
			return nil
		}}, "", codes.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			writer, _ := c.store.writer(t, nodewise.WithBatching(1, time.Hour, 1), nodewise.WithPatience(100*time.Millisecond))
			if c.code == codes.Aborted {
				c.store.after = func(int) error { // between its storing and its answer another one stores as well
					c.store.batches = append(c.store.batches, &nodewisev1.ProfileBatch{SequenceNumber: int64(len(c.store.batches) + 1)})
					return nil
				}
			}
			if err := writer.Observe(t.Context(), observed(1)); err != nil {
				t.Fatal(err)
			}
			_, err := writer.Commit(t.Context())
			if status.Code(err) != c.code || nodewise.ReasonOf(err) != c.reason {
				t.Error(err)
			}
			if closed := writer.Close(); closed != err {
				t.Error("closing tells the same:", closed)
			}
		})
	}
}

func TestAFullBufferWaits(t *testing.T) {
	release := make(chan struct{})
	store := &session{before: func(call int, _ *nodewisev1.ProfileBatch) error {
		if call > 1 {
			<-release
		}
		return nil
	}}
	writer, _ := store.writer(t, nodewise.WithBatching(1, time.Hour, 2))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	var err error
	accepted := int32(0)
	for err == nil {
		if err = writer.Observe(ctx, observed(accepted+1)); err == nil {
			accepted++
		}
	}
	if !errors.Is(err, context.DeadlineExceeded) || accepted != 2 {
		t.Error(accepted, err)
	}
	close(release)
	if _, err := writer.Commit(t.Context()); err != nil || !slices.Equal(store.nodes(), upTo(2)) {
		t.Error(err, store.nodes())
	}
}

func TestOpeningTellsWhatIsWrong(t *testing.T) {
	store := &session{before: func(int, *nodewisev1.ProfileBatch) error {
		return refusal(codes.InvalidArgument, "no", reason("INVALID_FIELD", nil))
	}}
	client := (&fake{ingest: store.ingest}).serve(t).client(t)
	if _, err := client.Ingest(t.Context(), "//"); nodewise.ReasonOf(err) != "INVALID_FIELD" {
		t.Error(err)
	}
}

func TestColumnsThatDoNotFitAreRefused(t *testing.T) {
	store := &session{}
	writer, _ := store.writer(t)
	for field, wrong := range map[string]*nodewisev1.Observations{
		"steps_per_second":  {Configurations: &nodewisev1.Configurations{Nodes: upTo(3)}, StepsPerSecond: []float64{1, 2}},
		"workers":           {Configurations: &nodewisev1.Configurations{Nodes: upTo(3), Workers: upTo(2)}, StepsPerSecond: []float64{1}},
		"placement_offsets": {Configurations: &nodewisev1.Configurations{PlacementOffsets: []int32{0, 3}, PlacementWorkers: []int32{1}}, StepsPerSecond: []float64{1}},
		"group_offsets":     {Configurations: &nodewisev1.Configurations{Nodes: upTo(3), GroupOffsets: []int32{0, 1, 2}, GroupWorkers: []int32{1, 1}}, StepsPerSecond: []float64{1}},
	} {
		err := writer.Observe(t.Context(), wrong)
		var failure *nodewise.Error
		if !errors.As(err, &failure) || failure.Reason != "INVALID_FIELD" || failure.Violations[0].Field != field {
			t.Error(field, err)
		}
	}
}

func TestRowsThatStateOtherColumnsAreOtherBatches(t *testing.T) {
	store := &session{}
	writer, _ := store.writer(t, nodewise.WithBatching(1000, time.Hour, 64))
	placed := func(device string, placements ...[]int32) *nodewisev1.Observations {
		rows := []nodewise.Configuration{}
		for _, placement := range placements {
			groups := []nodewise.WorkerGroup{{Workers: 1, ComputeFactor: 2}, {Workers: int32(len(placement))}}
			rows = append(rows, nodewise.Configuration{Device: device, Placement: placement, Groups: groups})
		}
		configurations, err := nodewise.Configurations(rows...)
		if err != nil {
			t.Fatal(err)
		}
		return &nodewisev1.Observations{Configurations: configurations, StepsPerSecond: []float64{1}}
	}
	for _, given := range []*nodewisev1.Observations{
		placed("V100", []int32{4, 4}, []int32{2}), placed("V100", []int32{1, 2, 3}), placed("A100", []int32{8}), observed(1),
	} {
		if err := writer.Observe(t.Context(), given); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := writer.Commit(t.Context()); err != nil || len(store.batches) != 3 {
		t.Fatal(err, len(store.batches))
	}
	joined := store.batches[0].GetObservations()
	want := &nodewisev1.Configurations{
		DeviceNames: []string{"V100"}, PlacementOffsets: []int32{0, 2, 3, 6}, PlacementWorkers: []int32{4, 4, 2, 1, 2, 3},
		GroupOffsets: []int32{0, 2, 4, 6}, GroupWorkers: []int32{1, 2, 1, 1, 1, 3}, GroupComputeFactors: []float64{2, 1, 2, 1, 2, 1},
	}
	if !proto.Equal(joined.GetConfigurations(), want) || fmt.Sprint(joined.GetStepsPerSecond()) != "[1 1 1]" {
		t.Errorf("%v, want %v", joined, want)
	}
}
