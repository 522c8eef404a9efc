package nodewise_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	nodewise "github.com/nodewise/nodewise/clients/go"
	nodewisev1 "github.com/nodewise/nodewise/clients/go/gen/nodewise/v1"
	nodewisev1beta1 "github.com/nodewise/nodewise/clients/go/gen/nodewise/v1beta1"
)

type simulations = grpc.ServerStreamingServer[nodewisev1beta1.SimulateResponse]

func progress(done int32) *nodewisev1beta1.SimulateResponse {
	return &nodewisev1beta1.SimulateResponse{Event: &nodewisev1beta1.SimulateResponse_Progress{Progress: &nodewisev1beta1.SimulationProgress{FinishedCount: done}}}
}

func someJobs(ids ...string) *nodewisev1beta1.SimulateResponse {
	return &nodewisev1beta1.SimulateResponse{Event: &nodewisev1beta1.SimulateResponse_Jobs{Jobs: &nodewisev1beta1.SimulationJobRows{JobIds: ids}}}
}

func simulated(policy string) *nodewisev1beta1.SimulateResponse {
	return &nodewisev1beta1.SimulateResponse{Event: &nodewisev1beta1.SimulateResponse_Result{Result: &nodewisev1beta1.SimulationResult{Policy: policy}}}
}

func TestLongCallsBeginAgainAfterACut(t *testing.T) {
	server := &fake{}
	server.simulate = func(_ *nodewisev1beta1.SimulateRequest, stream simulations) error {
		_ = stream.Send(progress(1))
		_ = stream.Send(someJobs("a"))
		if server.attempts() < 3 {
			server.cut()
			return nil
		}
		_ = stream.Send(someJobs("b"))
		return stream.Send(simulated("las"))
	}
	heard := 0
	found, err := server.serve(t).client(t).Simulate(t.Context(), &nodewisev1beta1.SimulateRequest{}, func(*nodewisev1beta1.SimulationProgress) { heard++ })
	if err != nil {
		t.Fatal(err)
	}
	if found.Result.GetPolicy() != "las" || len(found.Jobs) != 2 || found.Jobs[1].GetJobIds()[0] != "b" || server.attempts() != 3 || heard == 0 {
		t.Errorf("%v after %d attempts, %d words of progress", found, server.attempts(), heard)
	}
}

func TestLongCallsThatDoNotEnd(t *testing.T) {
	for name, c := range map[string]struct {
		simulate func(server *fake, stream simulations) error
		options  []nodewise.Option
		attempts int
		code     codes.Code
	}{
		"cut again and again": {func(server *fake, stream simulations) error {
			_ = stream.Send(progress(1))
			server.cut()
			return nil
		}, nil, 4, codes.Unavailable},
		"cut with retry off": {func(server *fake, stream simulations) error {
			_ = stream.Send(progress(1))
			server.cut()
			return nil
		}, []nodewise.Option{nodewise.WithRetry(false)}, 1, codes.Unavailable},
		"overloaded": {func(_ *fake, stream simulations) error {
			_ = stream.Send(progress(1))
			return status.Error(codes.ResourceExhausted, "")
		}, nil, 1, codes.ResourceExhausted},
		"no result": {func(_ *fake, stream simulations) error { return stream.Send(progress(1)) }, nil, 1, codes.Internal},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := &fake{}
			server.simulate = func(_ *nodewisev1beta1.SimulateRequest, stream simulations) error { return c.simulate(server, stream) }
			found, err := server.serve(t).client(t, c.options...).Simulate(t.Context(), &nodewisev1beta1.SimulateRequest{}, nil)
			if found != nil || status.Code(err) != c.code || server.attempts() != c.attempts {
				t.Errorf("%v, %v after %d attempts", found, err, server.attempts())
			}
		})
	}
}

type watches = grpc.ServerStreamingServer[nodewisev1.WatchProfilesResponse]

func told(name string) *nodewisev1.WatchProfilesResponse {
	return &nodewisev1.WatchProfilesResponse{Profiles: []*nodewisev1.Profile{{ProfileId: name}}}
}

func TestWatchesGoOnAfterACut(t *testing.T) {
	server := &fake{}
	ended := make(chan struct{})
	server.watch = func(_ *nodewisev1.WatchProfilesRequest, stream watches) error {
		switch server.attempts() {
		case 1:
			_ = stream.Send(told("first"))
			server.cut()
			return nil
		case 2:
			return nil // ended without a word, as by a server that shuts down
		}
		_ = stream.Send(told("again"))
		<-stream.Context().Done()
		close(ended)
		return nil
	}
	var names []string
	for event, err := range server.serve(t).client(t).WatchProfiles(t.Context(), &nodewisev1.WatchProfilesRequest{}) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, event.GetProfiles()[0].GetProfileId())
		if names[len(names)-1] == "again" {
			break
		}
	}
	<-ended // the server hears that nobody listens
	if names[len(names)-1] != "again" || server.attempts() != 3 {
		t.Error(names, server.attempts())
	}
}

func TestWatchesEndWithAnError(t *testing.T) {
	server := &fake{watch: func(r *nodewisev1.WatchProfilesRequest, stream watches) error {
		if r.GetNamePrefix() == "wait" {
			<-stream.Context().Done()
		}
		return status.Error(codes.PermissionDenied, "")
	}}
	client := server.serve(t).client(t)
	watch := func(ctx context.Context, client *nodewise.Client, prefix string) (failure error) {
		for _, err := range client.WatchProfiles(ctx, &nodewisev1.WatchProfilesRequest{NamePrefix: prefix}) {
			failure = err
		}
		return failure
	}
	if err := watch(t.Context(), client, ""); status.Code(err) != codes.PermissionDenied || server.attempts() != 1 {
		t.Error(err, server.attempts())
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := watch(ctx, client, "wait"); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	nobody, err := nodewise.NewClient("127.0.0.1:1", nodewise.WithRetry(false))
	if err != nil {
		t.Fatal(err)
	}
	if err := watch(t.Context(), nobody, ""); status.Code(err) != codes.Unavailable {
		t.Error(err)
	}
}

type questions = grpc.BidiStreamingServer[nodewisev1.StreamPredictRequest, nodewisev1.StreamPredictResponse]

func TestStreamPredict(t *testing.T) {
	server := &fake{stream: func(stream questions) error {
		for {
			question, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			if question.GetQuestionId() == "fatal" {
				return refusal(codes.InvalidArgument, "no", reason("MALFORMED_MESSAGE", nil))
			}
			_ = stream.Send(&nodewisev1.StreamPredictResponse{QuestionId: question.GetQuestionId()})
		}
	}}
	client := server.serve(t).client(t)
	answered := func(most int, ids ...string) (found []string, failure error) {
		given := func(yield func(*nodewisev1.StreamPredictRequest) bool) {
			for _, id := range ids {
				if !yield(&nodewisev1.StreamPredictRequest{QuestionId: id}) {
					return
				}
			}
		}
		for reply, err := range client.StreamPredict(t.Context(), given) {
			if failure = err; err == nil {
				found = append(found, reply.GetQuestionId())
			}
			if len(found) == most {
				break
			}
		}
		return found, failure
	}
	if found, err := answered(9, "", "mine", ""); err != nil || !slices.Equal(found, []string{"1", "mine", "3"}) {
		t.Error(found, err)
	}
	if found, err := answered(9, "a", "fatal"); nodewise.ReasonOf(err) != "MALFORMED_MESSAGE" || !slices.Equal(found, []string{"a"}) {
		t.Error(found, err)
	}
	if found, err := answered(1, "a", "b"); err != nil || len(found) != 1 {
		t.Error(found, err)
	}
}
