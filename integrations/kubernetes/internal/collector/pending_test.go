package collector

import (
	"context"
	"errors"
	"fmt"
	"testing"

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
