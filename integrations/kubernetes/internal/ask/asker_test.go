package ask

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	nodewise "github.com/nodewise/nodewise/clients/go"
	nodewisev1 "github.com/nodewise/nodewise/clients/go/gen/nodewise/v1"
)

// server answers with a test's functions, in the time of the test's bubble.
type server struct {
	asked, probed   atomic.Int64
	hangs           atomic.Bool
	digest, refusal string
	reply           *nodewisev1.PredictResponse // instead of the usual one
}

func (s *server) Predict(ctx context.Context, request *nodewisev1.PredictRequest, _ ...grpc.CallOption) (*nodewisev1.PredictResponse, error) {
	s.asked.Add(1)
	if s.hangs.Load() {
		<-ctx.Done()
		return nil, &nodewise.Error{Code: codes.DeadlineExceeded, Message: "late"}
	}
	if s.refusal != "" {
		return nil, &nodewise.Error{Code: codes.FailedPrecondition, Reason: s.refusal, Message: "no"}
	}
	if s.reply != nil {
		return s.reply, nil
	}
	if request.GetIfNoneMatch() == s.digest {
		return &nodewisev1.PredictResponse{Unchanged: true, Basis: &nodewisev1.Basis{Digest: s.digest}}, nil
	}
	return &nodewisev1.PredictResponse{
		Basis:          &nodewisev1.Basis{Digest: s.digest, Estimator: "queueing", EstimatorVersion: "2.1"},
		Recommendation: &nodewisev1.Recommendation{Row: 1, Nodes: 2, Why: "because"},
		Predictions: &nodewisev1.Predictions{
			RowsCount: 3, SamplesPerSecond: []float64{10, 19, 0}, StepsPerSecond: []float64{1, 1.9, 0}, ExcessMemoryBytes: []float64{0, 0, 5e9},
			Statuses: []nodewisev1.RowStatus{nodewisev1.RowStatus_ROW_STATUS_ANSWERED, nodewisev1.RowStatus_ROW_STATUS_ANSWERED, nodewisev1.RowStatus_ROW_STATUS_INFEASIBLE_MEMORY},
		},
	}, nil
}

func (s *server) Health(ctx context.Context, _ string) (healthv1.HealthCheckResponse_ServingStatus, error) {
	s.probed.Add(1)
	if s.hangs.Load() {
		<-ctx.Done()
		return 0, &nodewise.Error{Code: codes.DeadlineExceeded, Message: "late"}
	}
	return healthv1.HealthCheckResponse_SERVING, nil
}

var question = Question{Profile: "a", First: 1, Last: 3, Objective: Objective{Rule: "knee"}}

func bubble(t *testing.T, test func(*testing.T, *server, *Asker)) {
	synctest.Test(t, func(t *testing.T) {
		server := &server{digest: "d1"}
		test(t, server, New(t.Context(), server, Settings{}))
	})
}

func TestACurveIsAskedForOnceAndGivenAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, server *server, asker *Asker) {
		for range 100 {
			if _, err := asker.Cached(question); !errors.Is(err, ErrNoAnswerYet) {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		curve, err := asker.Cached(question)
		if err != nil || server.asked.Load() != 1 || curve.Recommended != 2 || curve.Why[:7] != "because" {
			t.Fatal(curve, err, server.asked.Load())
		}
		if point, known := curve.Point("", 2); !known || point.Rate != 19 || !point.Fits() {
			t.Error(point, known)
		}
		if point, known := curve.Point("", 3); !known || point.Fits() || point.ExcessMemoryBytes != 5e9 {
			t.Error(point, known)
		}
		time.Sleep(31 * time.Second) // old: it is asked again, by its digest
		_, _ = asker.Cached(question)
		synctest.Wait()
		again, err := asker.Cached(question)
		if err != nil || server.asked.Load() != 2 || !again.AskedAt.After(curve.AskedAt) || again.Recommended != 2 {
			t.Error(again, err, server.asked.Load())
		}
	})
}

func TestAServerThatIsGoneCostsOneTimeout(t *testing.T) {
	bubble(t, func(t *testing.T, server *server, asker *Asker) {
		if _, err := asker.Ask(t.Context(), question); err != nil {
			t.Fatal(err)
		}
		server.hangs.Store(true)
		other := question
		other.Profile = "b"
		begun := time.Now()
		for range 1000 {
			if _, err := asker.Ask(t.Context(), other); err == nil {
				t.Fatal("it answered")
			}
		}
		if waited := time.Since(begun); waited != 2*time.Second {
			t.Error("a thousand questions waited", waited)
		}
		if asked := server.asked.Load(); asked != 2 {
			t.Error("it was asked", asked, "times")
		}
		if curve, err := asker.Cached(question); err != nil || curve.Recommended != 2 {
			t.Error("what is known is not told:", err)
		}
		time.Sleep(10 * time.Minute)
		if probed := server.probed.Load(); probed < 30 || probed > 60 {
			t.Error("it was probed", probed, "times in 10 minutes")
		}
		if _, err := asker.Cached(question); err != nil {
			t.Error("what was known 10 minutes ago is not told:", err)
		}
		server.hangs.Store(false)
		time.Sleep(20 * time.Second)
		if curve, err := asker.Ask(t.Context(), other); err != nil || curve.Recommended != 2 {
			t.Error("it is back, but not asked:", err)
		}
		server.hangs.Store(true)
		time.Sleep(2 * time.Hour)
		if _, err := asker.Ask(t.Context(), question); err == nil {
			t.Error("what was known two hours ago is told")
		}
	})
}

func TestAFirstAnswerIsWaitedForOnce(t *testing.T) {
	bubble(t, func(t *testing.T, server *server, asker *Asker) {
		if curve, err := asker.Soon(question); err != nil || curve.Recommended != 2 {
			t.Fatal(err)
		}
		server.hangs.Store(true)
		other, begun := question, time.Now()
		other.Profile = "b"
		for range 1000 {
			if _, err := asker.Soon(other); !errors.Is(err, ErrNoAnswerYet) {
				t.Fatal(err)
			}
		}
		if waited := time.Since(begun); waited != 30*time.Millisecond {
			t.Error("a thousand questions waited", waited)
		}
	})
}

func TestARefusalIsKeptForAWhileAndIsNoReasonToStop(t *testing.T) {
	bubble(t, func(t *testing.T, server *server, asker *Asker) {
		server.refusal = "EVIDENCE_MISSING"
		for range 10 {
			if _, err := asker.Ask(t.Context(), question); nodewise.ReasonOf(err) != "EVIDENCE_MISSING" {
				t.Fatal(err)
			}
		}
		if server.asked.Load() != 1 || asker.Reachable() != nil {
			t.Error(server.asked.Load(), asker.Reachable())
		}
		server.refusal = ""
		time.Sleep(6 * time.Second)
		if _, err := asker.Ask(t.Context(), question); err != nil {
			t.Error(err)
		}
	})
}

func TestMemoryIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asker := New(t.Context(), &server{digest: "d"}, Settings{Entries: 100})
		for number := range int32(1000) {
			asked := question
			asked.Last = 3
			asked.WorkersPerNode = number + 1
			_, _ = asker.Ask(t.Context(), asked)
		}
		if found := len(asker.entries); found > 100 {
			t.Error(found, "entries")
		}
	})
}

// A reply that does not answer the question, or holds no proper numbers, is an error and never a curve.
func TestAnAbsurdReplyIsNotUsed(t *testing.T) {
	rows := func(change func(*nodewisev1.Predictions)) *nodewisev1.PredictResponse {
		found := &nodewisev1.Predictions{RowsCount: 3, StepsPerSecond: []float64{1, 2, 3}, FinishSeconds: []float64{3, 2, 1}}
		change(found)
		return &nodewisev1.PredictResponse{Predictions: found, Recommendation: &nodewisev1.Recommendation{Row: 1}}
	}
	for name, reply := range map[string]*nodewisev1.PredictResponse{
		"a row that was not asked": {Recommendation: &nodewisev1.Recommendation{Row: 1 << 30}},
		"a negative row":           {Recommendation: &nodewisev1.Recommendation{Row: -1}},
		"too many rows":            rows(func(p *nodewisev1.Predictions) { p.RowsCount = 4 }),
		"no number":                rows(func(p *nodewisev1.Predictions) { p.StepsPerSecond[2] = math.NaN() }),
		"an endless time":          rows(func(p *nodewisev1.Predictions) { p.FinishSeconds[0] = math.Inf(1) }),
		"a time before the begin":  rows(func(p *nodewisev1.Predictions) { p.FinishSeconds[0] = -1 }),
		"a recommendation's time":  {Predictions: rows(func(*nodewisev1.Predictions) {}).GetPredictions(), Recommendation: &nodewisev1.Recommendation{FinishSeconds: new(math.NaN())}},
	} {
		bubble(t, func(t *testing.T, server *server, asker *Asker) {
			server.reply = reply
			if curve, err := asker.Ask(t.Context(), question); err == nil || asker.Reachable() != nil {
				t.Error(name, curve, err)
			}
		})
	}
}

// The upper bound of the time is that of the lower bound of the throughput; what is spent once does not change.
func TestTheTimeHasAnUpperBound(t *testing.T) {
	bubble(t, func(t *testing.T, server *server, asker *Asker) {
		server.reply = &nodewisev1.PredictResponse{Predictions: &nodewisev1.Predictions{
			RowsCount: 3, StepsPerSecond: []float64{4, 4, 4}, LowerStepsPerSecond: []float64{2, 0, 5}, UpperStepsPerSecond: []float64{8, 8, 8},
			FinishSeconds: []float64{110, 110, 110}, OnceSeconds: []float64{10, 10, 10},
		}}
		curve, err := asker.Ask(t.Context(), question)
		if err != nil {
			t.Fatal(err)
		}
		for index, expected := range []float64{210, 0, 110} { // 0 = a throughput of 0 is possible
			if point := curve.Points[""][index]; point.UpperFinishSeconds != expected || point.FinishSeconds != 110 {
				t.Error(index, point)
			}
		}
	})
}

// Both bounds of the interval hold with the confidence of the objective.
func TestTheIntervalHasTheConfidence(t *testing.T) {
	for confidence, coverage := range map[float64]float64{0: 0, 0.5: 0, 0.975: 0.95} {
		asked := question
		asked.Objective.Confidence = confidence
		if found := asked.request("", nodewisev1.Freshness_FRESHNESS_WAIT).GetOptions().GetModel().GetIntervalCoverage(); math.Abs(found-coverage) > 1e-12 {
			t.Error(confidence, found)
		}
	}
}
