package nodewise_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	nodewise "github.com/nodewise/nodewise/clients/go"
	nodewisev1 "github.com/nodewise/nodewise/clients/go/gen/nodewise/v1"
)

func ask(t *testing.T, client *nodewise.Client) *nodewise.Error {
	t.Helper()
	_, err := client.Predict(t.Context(), &nodewisev1.PredictRequest{})
	var failure *nodewise.Error
	if err != nil && !errors.As(err, &failure) {
		t.Fatalf("%T is no *nodewise.Error: %v", err, err)
	}
	return failure
}

func TestWhatIsTriedAgain(t *testing.T) {
	for _, c := range []struct {
		name     string
		fail     func(ctx context.Context, server *fake) error // of every attempt but the last
		options  []nodewise.Option
		failures int // attempts that fail
		attempts int // that are expected
		code     codes.Code
	}{
		{"a server that goes away", func(context.Context, *fake) error { return status.Error(codes.Unavailable, "") }, nil, 3, 4, codes.OK},
		{"a server that cancels what it had not begun with", func(context.Context, *fake) error { return status.Error(codes.Canceled, "") }, nil, 1, 2, codes.OK},
		{"at most four times", func(context.Context, *fake) error { return status.Error(codes.Unavailable, "") }, nil, 9, 4, codes.Unavailable},
		{"not with retry off", func(context.Context, *fake) error { return status.Error(codes.Unavailable, "") }, []nodewise.Option{nodewise.WithRetry(false)}, 1, 1, codes.Unavailable},
		{"not an overloaded server", func(context.Context, *fake) error {
			return refusal(codes.ResourceExhausted, "full", reason("OVERLOADED", nil), retryAfter(2*time.Second))
		}, nil, 1, 1, codes.ResourceExhausted},
		{"not against the server's word", func(ctx context.Context, _ *fake) error {
			pushback(ctx, "-1")
			return status.Error(codes.Unavailable, "")
		}, nil, 1, 1, codes.Unavailable},
		{"not a wrong request", func(context.Context, *fake) error { return status.Error(codes.InvalidArgument, "") }, nil, 1, 1, codes.InvalidArgument},
		{"a connection that is cut", func(_ context.Context, server *fake) error { server.cut(); return nil }, nil, 1, 2, codes.OK},
		{"a reply that is cut after it has begun", func(ctx context.Context, server *fake) error {
			_ = grpc.SendHeader(ctx, metadata.Pairs("begun", "yes"))
			server.cut()
			return nil
		}, nil, 2, 3, codes.OK},
		{"not even that with retry off", func(ctx context.Context, server *fake) error {
			_ = grpc.SendHeader(ctx, metadata.Pairs("begun", "yes"))
			server.cut()
			return nil
		}, []nodewise.Option{nodewise.WithRetry(false)}, 1, 1, codes.Unavailable},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server := &fake{}
			server.predict = func(ctx context.Context, _ *nodewisev1.PredictRequest) (*nodewisev1.PredictResponse, error) {
				if server.attempts() <= c.failures {
					if err := c.fail(ctx, server); err != nil {
						return nil, err
					}
				}
				return &nodewisev1.PredictResponse{}, nil
			}
			failure := ask(t, server.serve(t).client(t, c.options...))
			code := codes.OK
			if failure != nil {
				code = failure.Code
			}
			if server.attempts() != c.attempts || code != c.code {
				t.Errorf("%d attempts, %v (%v); want %d, %v", server.attempts(), code, failure, c.attempts, c.code)
			}
		})
	}
}

func TestErrorsTellAllThatTheServerTold(t *testing.T) {
	server := &fake{predict: func(context.Context, *nodewisev1.PredictRequest) (*nodewisev1.PredictResponse, error) {
		return nil, refusal(codes.FailedPrecondition, "nothing is known",
			&errdetails.ErrorInfo{Reason: "SOMETHING", Domain: "elsewhere.example"},
			reason("EVIDENCE_MISSING", map[string]string{"missingFields": "workload.flops, phase_timings"}),
			&errdetails.BadRequest{FieldViolations: []*errdetails.BadRequest_FieldViolation{{Field: "a.b[3]", Description: "must be above 0"}}},
			retryAfter(1500*time.Millisecond))
	}}
	failure := ask(t, server.serve(t).client(t))
	delay, said := failure.RetryDelay()
	if failure.Code != codes.FailedPrecondition || failure.Reason != "EVIDENCE_MISSING" || failure.Message != "nothing is known" ||
		delay != 1500*time.Millisecond || !said || !slices.Equal(failure.Violations, []nodewise.Violation{{Field: "a.b[3]", Description: "must be above 0"}}) ||
		!slices.Equal(failure.MissingFields(), []string{"workload.flops", "phase_timings"}) || nodewise.ReasonOf(fmt.Errorf("wrapped: %w", failure)) != "EVIDENCE_MISSING" {
		t.Errorf("%+v", failure)
	}
	if text := failure.Error(); text != "nodewise: EVIDENCE_MISSING: nothing is known; a.b[3]: must be above 0; try again in 1.5s" {
		t.Error(text)
	}
	if status.Code(failure) != codes.FailedPrecondition {
		t.Error("gRPC does not see the status in it")
	}
}

func TestPushbackIsTold(t *testing.T) {
	server := &fake{predict: func(ctx context.Context, _ *nodewisev1.PredictRequest) (*nodewisev1.PredictResponse, error) {
		pushback(ctx, "250")
		return nil, status.Error(codes.ResourceExhausted, "full")
	}}
	if delay, said := ask(t, server.serve(t).client(t)).RetryDelay(); !said || delay != 250*time.Millisecond {
		t.Error(delay, said)
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	hung := &fake{predict: func(ctx context.Context, _ *nodewisev1.PredictRequest) (*nodewisev1.PredictResponse, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	client := hung.serve(t).client(t, nodewise.WithTimeout(30*time.Millisecond))
	if failure := ask(t, client); failure.Code != codes.DeadlineExceeded || !errors.Is(failure, context.DeadlineExceeded) || !strings.Contains(failure.Error(), "WithTimeout") {
		t.Error(failure)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	if _, err := hung.client(t).Predict(ctx, &nodewisev1.PredictRequest{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	nobody, err := nodewise.NewClient("127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	if failure := ask(t, nobody); failure.Code != codes.Unavailable || !strings.Contains(failure.Error(), "nodewise serve") {
		t.Error(failure)
	}
	if _, err := client.ListDevices(t.Context(), &nodewisev1.ListDevicesRequest{}); !strings.Contains(err.Error(), "does not offer ListDevices") {
		t.Error(err)
	}
	large := &fake{predict: func(context.Context, *nodewisev1.PredictRequest) (*nodewisev1.PredictResponse, error) {
		return &nodewisev1.PredictResponse{Basis: &nodewisev1.Basis{Choice: strings.Repeat("x", 5000)}}, nil
	}}
	if failure := ask(t, large.serve(t).client(t, nodewise.WithMaxReceiveBytes(4000))); failure.Code != codes.ResourceExhausted || !strings.Contains(failure.Error(), "WithMaxReceiveBytes") {
		t.Error(failure)
	}
}

func TestDeadlines(t *testing.T) {
	var left time.Duration
	note := func(ctx context.Context) {
		deadline, _ := ctx.Deadline()
		left = time.Until(deadline)
	}
	server := &fake{
		predict: func(ctx context.Context, _ *nodewisev1.PredictRequest) (*nodewisev1.PredictResponse, error) {
			note(ctx)
			return &nodewisev1.PredictResponse{}, nil
		},
		batch: func(ctx context.Context, _ *nodewisev1.BatchPredictRequest) (*nodewisev1.BatchPredictResponse, error) {
			note(ctx)
			return &nodewisev1.BatchPredictResponse{}, nil
		},
	}
	client := server.serve(t).client(t)
	expect := func(what string, most time.Duration) {
		t.Helper()
		if left > most || left < most-5*time.Second {
			t.Errorf("%s: %v left, want about %v", what, left, most)
		}
	}
	_ = ask(t, client)
	expect("the file's", 10*time.Second)
	_, _ = client.BatchPredict(t.Context(), &nodewisev1.BatchPredictRequest{})
	expect("the file's", 60*time.Second)
	_ = ask(t, server.client(t, nodewise.WithTimeout(40*time.Second)))
	expect("the client's", 40*time.Second)
	// More than the file has: it must not cap what the caller allows.
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Second)
	defer cancel()
	_, _ = client.Predict(ctx, &nodewisev1.PredictRequest{})
	expect("the context's", 100*time.Second)
}

func TestWhatTheClientFillsIn(t *testing.T) {
	var ids []string
	var scheduled *nodewisev1.ScheduleRequest
	server := &fake{
		appended: func(_ context.Context, r *nodewisev1.AppendProfileRequest) (*nodewisev1.AppendProfileResponse, error) {
			ids = append(ids, r.GetRequestId())
			if len(ids) == 1 {
				return nil, status.Error(codes.Unavailable, "")
			}
			return &nodewisev1.AppendProfileResponse{}, nil
		},
		schedule: func(_ context.Context, r *nodewisev1.ScheduleRequest) (*nodewisev1.ScheduleResponse, error) {
			scheduled = r
			return &nodewisev1.ScheduleResponse{}, nil
		},
	}
	client := server.serve(t).client(t)
	request := &nodewisev1.AppendProfileRequest{ProfileId: "a"}
	for range 2 {
		if _, err := client.AppendProfile(t.Context(), request); err != nil {
			t.Fatal(err)
		}
	}
	if len(ids) != 3 || ids[0] == "" || ids[0] != ids[1] || ids[1] == ids[2] || request.GetRequestId() != "" {
		t.Errorf("ids %q, the caller's request %v", ids, request)
	}
	asked := &nodewisev1.ScheduleRequest{Policy: "las", Jobs: []*nodewisev1.ScheduleJob{{JobId: "a"}}}
	if _, err := client.Schedule(t.Context(), asked); err != nil {
		t.Fatal(err)
	}
	if time.Since(scheduled.GetNow().AsTime()) > time.Minute || asked.Now != nil {
		t.Error(scheduled)
	}
	scheduled.Now = nil
	if !proto.Equal(scheduled, asked) {
		t.Errorf("%v arrived, %v was asked", scheduled, asked)
	}
}

func TestPages(t *testing.T) {
	server := &fake{list: func(_ context.Context, r *nodewisev1.ListProfilesRequest) (*nodewisev1.ListProfilesResponse, error) {
		switch r.GetPageToken() {
		case "":
			return &nodewisev1.ListProfilesResponse{Profiles: []*nodewisev1.Profile{{ProfileId: "a"}, {ProfileId: "b"}}, NextPageToken: "2"}, nil
		case "2":
			return &nodewisev1.ListProfilesResponse{NextPageToken: "3"}, nil
		case "3":
			if r.GetNamePrefix() == "fails" {
				return nil, status.Error(codes.Internal, "")
			}
			return &nodewisev1.ListProfilesResponse{Profiles: []*nodewisev1.Profile{{ProfileId: "c"}}}, nil
		}
		return nil, status.Error(codes.InvalidArgument, "")
	}}
	client := server.serve(t).client(t)
	names := func(prefix string, most int) (found []string, failure error) {
		request := &nodewisev1.ListProfilesRequest{NamePrefix: prefix}
		for profile, err := range nodewise.Items(t.Context(), client.ListProfiles, request, (*nodewisev1.ListProfilesResponse).GetProfiles) {
			if failure = err; err == nil {
				found = append(found, profile.GetProfileId())
			}
			if len(found) == most {
				break
			}
		}
		if request.GetPageToken() != "" {
			t.Error("the caller's request was changed")
		}
		return found, failure
	}
	if found, err := names("x", 9); err != nil || !slices.Equal(found, []string{"a", "b", "c"}) {
		t.Error(found, err)
	}
	if found, err := names("fails", 9); status.Code(err) != codes.Internal || len(found) != 2 {
		t.Error(found, err)
	}
	before := server.attempts()
	if found, _ := names("x", 1); len(found) != 1 || server.attempts() != before+1 {
		t.Error("pages were fetched that nobody asked for")
	}
}
