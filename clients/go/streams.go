package nodewise

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"path"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	nodewisev1 "github.com/nodewise/nodewise/clients/go/gen/nodewise/v1"
	nodewisev1beta1 "github.com/nodewise/nodewise/clients/go/gen/nodewise/v1beta1"
)

// WatchProfiles reports all profiles and then every change, until the context or the loop ends. If the connection is lost, it starts
// again: it reports all profiles again, and caught_up once more. It ends with an error if the server does not return within 30 s.
func (c *Client) WatchProfiles(
	ctx context.Context, request *nodewisev1.WatchProfilesRequest, options ...grpc.CallOption,
) iter.Seq2[*nodewisev1.WatchProfilesResponse, error] {
	const method = nodewisev1.ProfileService_WatchProfiles_FullMethodName
	return func(yield func(*nodewisev1.WatchProfilesResponse, error) bool) {
		opened, attempts, limit := false, 0, openingPatience
		goneAt := time.Now()
		for {
			heard, failure, stopped := watchOnce(ctx, c, request, options, yield)
			if stopped {
				return
			}
			if heard {
				opened, attempts, limit = true, 0, patience
			}
			if attempts == 0 && opened {
				goneAt = time.Now()
			}
			attempts++
			pause := resuming.pause(attempts, failure)
			again := c.retry && resumable(failure) && attempts < resuming.attempts && time.Since(goneAt)+pause <= limit
			if ctx.Err() == nil && again && sleep(ctx, pause) {
				continue
			}
			if ctx.Err() != nil {
				failure = c.explained(ctx, ctx.Err(), nil, method)
			}
			if failure == nil && !c.retry {
				return
			}
			if failure == nil {
				failure = &Error{Code: codes.Unavailable, Message: fmt.Sprintf("the server ended the watch %d times without a reply", attempts)}
			}
			yield(nil, failure)
			return
		}
	}
}

// watchOnce watches until the stream ends, and returns whether the server replied, why the stream ended (nil = without an error), and
// whether the caller has stopped reading.
func watchOnce(
	ctx context.Context, c *Client, request *nodewisev1.WatchProfilesRequest, options []grpc.CallOption,
	yield func(*nodewisev1.WatchProfilesResponse, error) bool,
) (heard bool, failure *Error, stopped bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := nodewisev1.NewProfileServiceClient(c.conn).WatchProfiles(ctx, request, options...)
	for err == nil {
		var event *nodewisev1.WatchProfilesResponse
		if event, err = stream.Recv(); err != nil {
			break
		}
		heard = true
		if !yield(event, nil) {
			return true, nil, true
		}
	}
	if errors.Is(err, io.EOF) {
		return heard, nil, false
	}
	return heard, c.explained(ctx, err, nil, nodewisev1.ProfileService_WatchProfiles_FullMethodName), false
}

// StreamPredict asks over one stream: questions are taken as the server reads them, answers come as they are ready. A question without an
// id is numbered from 1. A problem of one question ends that question, not the stream ([ProblemError] makes an error of it). The stream
// lasts at most 600 s unless the context or [WithTimeout] says otherwise.
func (c *Client) StreamPredict(
	ctx context.Context, questions iter.Seq[*nodewisev1.StreamPredictRequest], options ...grpc.CallOption,
) iter.Seq2[*nodewisev1.StreamPredictResponse, error] {
	const method = nodewisev1.PredictionService_StreamPredict_FullMethodName
	return func(yield func(*nodewisev1.StreamPredictResponse, error) bool) {
		ctx, cancel := c.bounded(ctx, method)
		defer cancel()
		ctx, stop := context.WithCancel(ctx) // where the loop ends before the stream does
		defer stop()
		stream, err := nodewisev1.NewPredictionServiceClient(c.conn).StreamPredict(ctx, options...)
		if err != nil {
			yield(nil, c.explained(ctx, err, nil, method))
			return
		}
		go func() {
			number := 0
			for question := range questions {
				number++
				if question.GetQuestionId() == "" {
					question = shallow(question)
					question.QuestionId = strconv.Itoa(number)
				}
				if stream.Send(question) != nil {
					return // the receiver gets the reason
				}
			}
			_ = stream.CloseSend()
		}()
		for {
			reply, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(nil, c.explained(ctx, err, stream.Trailer(), method))
				return
			}
			if !yield(reply, nil) {
				return
			}
		}
	}
}

// IngestProfile opens the contract's stream of numbered batches as it is; [Client.Ingest] batches, numbers and resumes by itself. The
// stream has no deadline but the context's.
func (c *Client) IngestProfile(
	ctx context.Context, options ...grpc.CallOption,
) (grpc.BidiStreamingClient[nodewisev1.IngestProfileRequest, nodewisev1.IngestProfileResponse], error) {
	stream, err := nodewisev1.NewProfileServiceClient(c.conn).IngestProfile(ctx, options...)
	if err != nil {
		return nil, c.explained(ctx, err, nil, nodewisev1.ProfileService_IngestProfile_FullMethodName)
	}
	return stream, nil
}

// Simulation is what a policy would have done.
type Simulation struct {
	Result *nodewisev1beta1.SimulationResult
	// Jobs and Timeline are the pieces in which columns came, in order.
	Jobs     []*nodewisev1beta1.SimulationJobRows
	Timeline []*nodewisev1beta1.SimulationTimelineRows
}

// Simulate tells what a policy would have done to jobs that arrive over time; onProgress (or nil) hears how far it is, from the start again
// where the server went away in the middle.
func (c *Client) Simulate(
	ctx context.Context, request *nodewisev1beta1.SimulateRequest, onProgress func(*nodewisev1beta1.SimulationProgress), options ...grpc.CallOption,
) (*Simulation, error) {
	open := nodewisev1beta1.NewSimulationServiceClient(c.conn).Simulate
	result, pieces, err := longCall(ctx, c, nodewisev1beta1.SimulationService_Simulate_FullMethodName, open, request, onProgress,
		(*nodewisev1beta1.SimulateResponse).GetResult, options)
	if err != nil {
		return nil, err
	}
	found := &Simulation{Result: result}
	for _, piece := range pieces {
		found.Jobs = gathered(found.Jobs, piece.GetJobs())
		found.Timeline = gathered(found.Timeline, piece.GetTimeline())
	}
	return found, nil
}

// Plan finds the best configuration within constraints; onProgress (or nil) hears the best so far.
func (c *Client) Plan(
	ctx context.Context, request *nodewisev1beta1.PlanRequest, onProgress func(*nodewisev1beta1.PlanProgress), options ...grpc.CallOption,
) (*nodewisev1beta1.PlanResult, error) {
	open := nodewisev1beta1.NewPlanServiceClient(c.conn).Plan
	result, _, err := longCall(ctx, c, nodewisev1beta1.PlanService_Plan_FullMethodName, open, request, onProgress,
		(*nodewisev1beta1.PlanResponse).GetResult, options)
	return result, err
}

// Backtest fits estimators to a table's train rows and scores them on its test rows; onProgress (or nil) hears how far it is.
func (c *Client) Backtest(
	ctx context.Context, request *nodewisev1beta1.BacktestRequest, onProgress func(*nodewisev1beta1.BacktestProgress), options ...grpc.CallOption,
) (*nodewisev1beta1.BacktestResult, error) {
	open := nodewisev1beta1.NewEvaluationServiceClient(c.conn).Backtest
	result, _, err := longCall(ctx, c, nodewisev1beta1.EvaluationService_Backtest_FullMethodName, open, request, onProgress,
		(*nodewisev1beta1.BacktestResponse).GetResult, options)
	return result, err
}

// Executed is what a replay or a diagnosis ends with: its result R, and the executed events and exchanges where they were asked for.
type Executed[R any] struct {
	Result R
	// Timeline and Collectives are the pieces in which columns came, in order.
	Timeline    []*nodewisev1beta1.TimelinePiece
	Collectives []*nodewisev1beta1.ReplayedCollectives
}

// Replay predicts steps of a recorded job from its other steps, as they were or changed; onProgress (or nil) hears how far it is.
func (c *Client) Replay(
	ctx context.Context, request *nodewisev1beta1.ReplayRequest, onProgress func(*nodewisev1beta1.DiagnosisProgress), options ...grpc.CallOption,
) (*Executed[*nodewisev1beta1.ReplayResult], error) {
	open := nodewisev1beta1.NewDiagnosisServiceClient(c.conn).Replay
	result, pieces, err := longCall(ctx, c, nodewisev1beta1.DiagnosisService_Replay_FullMethodName, open, request, onProgress,
		(*nodewisev1beta1.ReplayResponse).GetResult, options)
	return executed(result, pieces, err)
}

// Diagnose finds what bounds the steps of a recorded job, which ranks the others wait for, and what would help most; onProgress (or nil)
// gets the progress.
func (c *Client) Diagnose(
	ctx context.Context, request *nodewisev1beta1.DiagnoseRequest, onProgress func(*nodewisev1beta1.DiagnosisProgress), options ...grpc.CallOption,
) (*Executed[*nodewisev1beta1.DiagnosisResult], error) {
	open := nodewisev1beta1.NewDiagnosisServiceClient(c.conn).Diagnose
	result, pieces, err := longCall(ctx, c, nodewisev1beta1.DiagnosisService_Diagnose_FullMethodName, open, request, onProgress,
		(*nodewisev1beta1.DiagnoseResponse).GetResult, options)
	return executed(result, pieces, err)
}

func executed[R any, M interface {
	GetTimeline() *nodewisev1beta1.TimelinePiece
	GetCollectives() *nodewisev1beta1.ReplayedCollectives
}](result *R, pieces []M, err error) (*Executed[*R], error) {
	if err != nil {
		return nil, err
	}
	found := &Executed[*R]{Result: result}
	for _, piece := range pieces {
		found.Timeline = gathered(found.Timeline, piece.GetTimeline())
		found.Collectives = gathered(found.Collectives, piece.GetCollectives())
	}
	return found, nil
}

func gathered[T any](pieces []*T, piece *T) []*T {
	if piece == nil {
		return pieces
	}
	return append(pieces, piece)
}

// longCall reads a stream of progress to its result, and gives that with all that came before but progress. It changes nothing at the
// server: where it was cut, it is begun again, a few times within the call's deadline. gRPC itself tries again what was cut before anything
// was heard.
func longCall[Q, E, P, R any, M interface {
	*E
	GetProgress() *P
}](
	ctx context.Context, c *Client, method string, open func(context.Context, *Q, ...grpc.CallOption) (grpc.ServerStreamingClient[E], error),
	request *Q, onProgress func(*P), resultOf func(M) *R, options []grpc.CallOption,
) (result *R, pieces []M, _ error) {
	ctx, cancel := c.bounded(ctx, method)
	defer cancel()
	for attempt := 1; ; attempt++ {
		result, pieces = nil, nil
		stream, err := open(ctx, request, options...)
		for err == nil {
			var event M
			if event, err = stream.Recv(); err != nil {
				break
			}
			if result = resultOf(event); event.GetProgress() == nil {
				pieces = append(pieces, event)
			} else if onProgress != nil {
				onProgress(event.GetProgress())
			}
		}
		if errors.Is(err, io.EOF) {
			if result == nil {
				return nil, nil, &Error{Code: codes.Internal, Message: "the server ended " + path.Base(method) + " without a result"}
			}
			return result, pieces, nil
		}
		failure, heard := c.explained(ctx, err, nil, method), false
		if stream != nil {
			header, _ := stream.Header()
			failure, heard = c.explained(ctx, err, stream.Trailer(), method), header.Len() > 0
		}
		if !heard || !c.again(ctx, method, failure, attempt) {
			return nil, nil, failure
		}
	}
}
