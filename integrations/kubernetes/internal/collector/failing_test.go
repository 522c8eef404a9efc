package collector

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	prometheusv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"google.golang.org/grpc/codes"

	nodewise "github.com/nodewise/nodewise/clients/go"
	nodewisev1 "github.com/nodewise/nodewise/clients/go/gen/nodewise/v1"
)

// What Nodewise does not take now is sent again, in order; what it would refuse again is dropped.
func TestWhatIsNotTakenIsSentAgain(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		kept bool
	}{
		"absent":          {&nodewise.Error{Code: codes.Unavailable}, true},
		"slow":            {&nodewise.Error{Code: codes.DeadlineExceeded}, true},
		"slow, it says":   {&nodewise.Error{Code: codes.DeadlineExceeded, Reason: "DEADLINE_EXCEEDED"}, true},
		"no answer":       {errors.New("it does not answer as Nodewise does"), true},
		"its store fails": {fmt.Errorf("no answer from Nodewise: %w", &nodewise.Error{Code: codes.Unavailable, Reason: "STORE_UNAVAILABLE"}), true},
		"overloaded":      {&nodewise.Error{Code: codes.ResourceExhausted, Reason: "OVERLOADED"}, true},
		"too many calls":  {nodewise.ProblemError(&nodewisev1.Problem{Reason: "QUOTA_EXCEEDED", RetryDelaySeconds: new(float64)}), true},
		"full namespace":  {&nodewise.Error{Code: codes.ResourceExhausted, Reason: "QUOTA_EXCEEDED"}, false},
		"expired token":   {&nodewise.Error{Code: codes.Unauthenticated, Reason: "UNAUTHENTICATED"}, true},
		"invalid":         {&nodewise.Error{Code: codes.InvalidArgument, Reason: "INVALID_FIELD"}, false},
		"not allowed":     {&nodewise.Error{Code: codes.PermissionDenied, Reason: "PERMISSION_DENIED"}, false},
		"already there":   {&nodewise.Error{Code: codes.AlreadyExists, Reason: "REQUEST_ID_REUSED"}, false},
	} {
		var sent []string
		fails := test.err
		collector := newWindows(t).collector
		collector.Append = func(_ context.Context, request *nodewisev1.AppendProfileRequest) error {
			if fails == nil || !test.kept {
				sent = append(sent, request.GetRequestId())
			}
			return fails
		}
		for number := range mostPending + 2 {
			collector.pending = append(collector.pending, &nodewisev1.AppendProfileRequest{RequestId: fmt.Sprint(number)})
		}
		failure := collector.Collect(t.Context(), begin)
		if (failure != nil) != test.kept || test.kept && len(sent) != 0 || !test.kept && len(collector.pending) != 0 {
			t.Error(name, ": ", failure, len(sent), len(collector.pending))
		}
		fails = nil
		if err := collector.Collect(t.Context(), begin); err != nil || len(sent) != mostPending || sent[0] != "2" || len(collector.pending) != 0 {
			t.Error(name, ": ", err, len(sent), len(collector.pending))
		}
	}
}

// hanging is a Prometheus that never answers.
type hanging struct{}

func (hanging) Query(ctx context.Context, _ string, _ time.Time, _ ...prometheusv1.Option) (model.Value, prometheusv1.Warnings, error) {
	<-ctx.Done()
	return nil, nil, ctx.Err()
}

// A source that hangs costs a window one time-out, however many jobs have it, and other jobs are observed.
func TestASourceThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWindows(t)
		for number := range 200 {
			w.write(pod(fmt.Sprint("asks-", number), "", profiled+", nodewise.dev/metrics-query: steps_rate", ""))
		}
		w.collector.Prometheus = hanging{}
		w.write(pod("reports", "batch/v1 Job part", "", ""))
		w.write(owner("batch/v1", "Job", "part", "trainer.kubeflow.org/v1alpha1 TrainJob train", "", ""))
		found := 0
		for window := range 4 {
			w.write(trained(profiled, 60*window, fmt.Sprintf(`metrics: [{name: current_step, value: "%d"}]`, 120*window)))
			begun := time.Now()
			found += len(w.collect())
			if took := time.Since(begun); took > w.collector.Window/2 {
				t.Error("a window took ", took)
			}
		}
		if found == 0 {
			t.Error("the job whose source answers was not observed")
		}
	})
}
