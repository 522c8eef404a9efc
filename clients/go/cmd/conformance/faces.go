package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"reflect"

	"google.golang.org/protobuf/proto"

	nodewise "github.com/nodewise/nodewise/clients/go"
	nodewisev1 "github.com/nodewise/nodewise/clients/go/gen/nodewise/v1"
	nodewisev1beta1 "github.com/nodewise/nodewise/clients/go/gen/nodewise/v1beta1"
)

// row is one row as the row view tells it; nil = it says that there is none.
type row struct {
	Job                   *int            `json:"job,omitempty"`
	Nodes                 *int32          `json:"nodes"`
	Workers               *int32          `json:"workers"`
	Status                any             `json:"status"`
	StepSeconds           *float64        `json:"step_seconds"`
	SamplesPerSecond      *float64        `json:"samples_per_second"`
	LowerSamplesPerSecond *float64        `json:"lower_samples_per_second"`
	UpperSamplesPerSecond *float64        `json:"upper_samples_per_second"`
	MemoryBytes           *float64        `json:"memory_bytes"`
	Bottleneck            *string         `json:"bottleneck"`
	Reason                *string         `json:"reason"`
	Error                 *failureOfAsked `json:"error,omitempty"`
}

type failureOfAsked struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

func (told *outcome) ask(ctx context.Context, client *nodewise.Client, asked line) error {
	if asked.Face == "ingest" {
		return told.ingest(ctx, client, asked.Ingest)
	}
	if asked.Face != "stream" && len(asked.Requests) != 1 {
		return fmt.Errorf("the face %q takes one request, not %d", asked.Face, len(asked.Requests))
	}
	switch asked.Face {
	case "call":
		reply, err := call(ctx, client, path.Base(asked.Method), asked.Requests[0])
		if err != nil {
			return err
		}
		return told.reply(reply)
	case "rows":
		reply, err := call(ctx, client, path.Base(asked.Method), asked.Requests[0])
		if err != nil {
			return err
		}
		return told.rows(reply)
	case "pages":
		return told.pages(ctx, client, path.Base(asked.Method), asked.Requests[0])
	case "progress":
		return told.progress(ctx, client, path.Base(asked.Method), asked.Requests[0])
	case "stream":
		return told.stream(ctx, client, asked)
	case "watch":
		return told.watch(ctx, client, asked)
	}
	return fmt.Errorf("there is no face %q", asked.Face)
}

// call calls the client's method of that name.
func call(ctx context.Context, client *nodewise.Client, name string, text json.RawMessage) (proto.Message, error) {
	method := reflect.ValueOf(client).MethodByName(name)
	if !method.IsValid() || method.Type().NumIn() != 3 {
		return nil, fmt.Errorf("the client has no unary method %s", name)
	}
	request := reflect.New(method.Type().In(1).Elem())
	if _, err := read(text, request.Interface().(proto.Message)); err != nil {
		return nil, err
	}
	told := method.Call([]reflect.Value{reflect.ValueOf(ctx), request})
	err, _ := told[1].Interface().(error)
	return told[0].Interface().(proto.Message), err
}

func (told *outcome) rows(reply proto.Message) error {
	switch reply := reply.(type) {
	case *nodewisev1.PredictResponse:
		told.view(nodewise.RowsOf(reply.GetPredictions()), nil)
	case *nodewisev1.BatchPredictResponse:
		if len(reply.GetOutcomes()) == 0 {
			told.view(nodewise.RowsOf(reply.GetPredictions()), nil)
		}
		for index, job := range nodewise.JobsOf(reply) {
			var failure *nodewise.Error
			if errors.As(job.Err, &failure) {
				told.Rows = append(told.Rows, row{Job: &index, Error: &failureOfAsked{failure.Reason, failure.Message}})
				continue
			}
			told.view(job.Rows, &index)
		}
	default:
		return fmt.Errorf("%T has no rows", reply)
	}
	return nil
}

func (told *outcome) view(rows nodewise.Rows, job *int) {
	for _, each := range rows.All() {
		seen := row{
			Job: job, Nodes: known(each.Nodes(), each.Nodes() != 0), Workers: known(each.Workers(), each.Workers() != 0), Status: each.Status().String(), StepSeconds: known(each.StepSeconds()),
			SamplesPerSecond: known(each.SamplesPerSecond()), LowerSamplesPerSecond: known(each.LowerSamplesPerSecond()),
			UpperSamplesPerSecond: known(each.UpperSamplesPerSecond()), MemoryBytes: known(each.MemoryBytes()), Bottleneck: known(each.Bottleneck()),
		}
		if _, named := nodewisev1.RowStatus_name[int32(each.Status())]; !named {
			seen.Status = int32(each.Status())
		}
		if refusal := each.Refusal(); refusal != nil {
			seen.Reason = &refusal.Reason
		}
		told.Rows = append(told.Rows, seen)
	}
}

func known[T any](value T, exists bool) *T {
	if !exists {
		return nil
	}
	return &value
}

func (told *outcome) pages(ctx context.Context, c *nodewise.Client, name string, text json.RawMessage) error {
	switch name {
	case "ListEstimators":
		return items(ctx, told, c.ListEstimators, text, &nodewisev1.ListEstimatorsRequest{}, (*nodewisev1.ListEstimatorsResponse).GetEstimators)
	case "ListDevices":
		return items(ctx, told, c.ListDevices, text, &nodewisev1.ListDevicesRequest{}, (*nodewisev1.ListDevicesResponse).GetDevices)
	case "ListPlugins":
		return items(ctx, told, c.ListPlugins, text, &nodewisev1.ListPluginsRequest{}, (*nodewisev1.ListPluginsResponse).GetPlugins)
	case "ListProfiles":
		return items(ctx, told, c.ListProfiles, text, &nodewisev1.ListProfilesRequest{}, (*nodewisev1.ListProfilesResponse).GetProfiles)
	case "ListUsage":
		return items(ctx, told, c.ListUsage, text, &nodewisev1.ListUsageRequest{}, (*nodewisev1.ListUsageResponse).GetNamespaces)
	case "ListPolicies":
		return items(ctx, told, c.ListPolicies, text, &nodewisev1.ListPoliciesRequest{}, (*nodewisev1.ListPoliciesResponse).GetPolicies)
	case "ListGenerations":
		return items(ctx, told, c.ListGenerations, text, &nodewisev1beta1.ListGenerationsRequest{}, (*nodewisev1beta1.ListGenerationsResponse).GetGenerations)
	case "ListTokens":
		return items(ctx, told, c.ListTokens, text, &nodewisev1beta1.ListTokensRequest{}, (*nodewisev1beta1.ListTokensResponse).GetTokens)
	case "ListPriors":
		return items(ctx, told, c.ListPriors, text, &nodewisev1beta1.ListPriorsRequest{}, (*nodewisev1beta1.ListPriorsResponse).GetLearned)
	}
	return fmt.Errorf("there is no listing %s", name)
}

func items[Q nodewise.Listing, P nodewise.Page, I proto.Message](
	ctx context.Context, told *outcome, list nodewise.List[Q, P], text json.RawMessage, request Q, of func(P) []I,
) error {
	if _, err := read(text, request); err != nil {
		return err
	}
	for item, err := range nodewise.Items(ctx, list, request, of) {
		if err != nil {
			return err
		}
		if err := told.reply(item); err != nil {
			return err
		}
	}
	return nil
}

func (told *outcome) progress(ctx context.Context, c *nodewise.Client, name string, text json.RawMessage) error {
	switch name {
	case "Simulate":
		request, err := read(text, &nodewisev1beta1.SimulateRequest{})
		return last(told, err, func() (proto.Message, error) {
			found, err := c.Simulate(ctx, request, nil)
			if err != nil {
				return nil, err
			}
			return &nodewisev1beta1.SimulateResponse{Event: &nodewisev1beta1.SimulateResponse_Result{Result: found.Result}}, nil
		})
	case "Plan":
		request, err := read(text, &nodewisev1beta1.PlanRequest{})
		return last(told, err, func() (proto.Message, error) {
			result, err := c.Plan(ctx, request, nil)
			return &nodewisev1beta1.PlanResponse{Event: &nodewisev1beta1.PlanResponse_Result{Result: result}}, err
		})
	case "Backtest":
		request, err := read(text, &nodewisev1beta1.BacktestRequest{})
		return last(told, err, func() (proto.Message, error) {
			result, err := c.Backtest(ctx, request, nil)
			return &nodewisev1beta1.BacktestResponse{Event: &nodewisev1beta1.BacktestResponse_Result{Result: result}}, err
		})
	case "Replay":
		request, err := read(text, &nodewisev1beta1.ReplayRequest{})
		return last(told, err, func() (proto.Message, error) {
			found, err := c.Replay(ctx, request, nil)
			if err != nil {
				return nil, err
			}
			return &nodewisev1beta1.ReplayResponse{Event: &nodewisev1beta1.ReplayResponse_Result{Result: found.Result}}, nil
		})
	case "Diagnose":
		request, err := read(text, &nodewisev1beta1.DiagnoseRequest{})
		return last(told, err, func() (proto.Message, error) {
			found, err := c.Diagnose(ctx, request, nil)
			if err != nil {
				return nil, err
			}
			return &nodewisev1beta1.DiagnoseResponse{Event: &nodewisev1beta1.DiagnoseResponse_Result{Result: found.Result}}, nil
		})
	}
	return fmt.Errorf("there is no long call %s", name)
}

func last(told *outcome, err error, ask func() (proto.Message, error)) error {
	if err != nil {
		return err
	}
	reply, err := ask()
	if err != nil {
		return err
	}
	return told.reply(reply)
}

func (told *outcome) stream(ctx context.Context, client *nodewise.Client, asked line) error {
	questions := []*nodewisev1.StreamPredictRequest{}
	for _, text := range asked.Requests {
		question, err := read(text, &nodewisev1.StreamPredictRequest{})
		if err != nil {
			return err
		}
		questions = append(questions, question)
	}
	given := func(yield func(*nodewisev1.StreamPredictRequest) bool) {
		for _, question := range questions {
			if !yield(question) {
				return
			}
		}
	}
	for reply, err := range client.StreamPredict(ctx, given) {
		if err != nil {
			return err
		}
		if err := told.reply(reply); err != nil || len(told.Replies) == asked.CancelAfterReplies {
			return err
		}
	}
	return nil
}

func (told *outcome) watch(ctx context.Context, client *nodewise.Client, asked line) error {
	request, err := read(asked.Requests[0], &nodewisev1.WatchProfilesRequest{})
	if err != nil {
		return err
	}
	for event, err := range client.WatchProfiles(ctx, request) {
		if err != nil {
			return err
		}
		if err := told.reply(event); err != nil || len(told.Replies) == asked.CancelAfterReplies {
			return err
		}
	}
	return nil
}

func (told *outcome) ingest(ctx context.Context, client *nodewise.Client, asked ingestion) (err error) {
	var options []nodewise.IngestOption
	if asked.SessionID != "" {
		options = append(options, nodewise.WithSession(asked.SessionID))
	}
	writer, err := client.Ingest(ctx, asked.ProfileID, options...)
	if err != nil {
		return err
	}
	defer func() {
		if closed := writer.Close(); err == nil && asked.Commit {
			err = closed
		}
	}()
	state := map[string]int64{"durable": writer.DurableSequenceNumber(), "revision": 0}
	for _, text := range asked.Batches {
		batch, err := read(text, &nodewisev1.ProfileBatch{})
		if err != nil {
			return err
		}
		if err := writer.Write(ctx, batch); err != nil {
			return err
		}
		if state["durable"], err = writer.Flush(ctx); err != nil {
			return err
		}
	}
	if asked.Commit {
		committed, err := writer.Commit(ctx)
		if err != nil {
			return err
		}
		state["durable"], state["revision"] = committed.SequenceNumber, committed.Revision
	}
	told.Replies = append(told.Replies, state)
	return nil
}
