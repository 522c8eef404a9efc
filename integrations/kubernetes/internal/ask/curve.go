package ask

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protojson"

	nodewise "github.com/nodewise/nodewise/clients/go"
	nodewisev1 "github.com/nodewise/nodewise/clients/go/gen/nodewise/v1"
)

// Question is a question about one job. Equal questions share one curve.
type Question struct {
	// Profile is the name of the job's stored profile.
	Profile string
	// Devices are the device types to predict, joined by commas in order; empty = the device of the job's evidence.
	Devices string
	// WorkersPerNode is the number of devices that the job uses on each node; 0 = as in its evidence.
	WorkersPerNode int32
	// First and Last are the lowest and highest numbers of nodes. With PowersOfTwo only the powers of two between them count.
	First, Last int32
	PowersOfTwo bool
	// Step is the distance between numbers of nodes, from the first; 0 = 1.
	Step int32
	// Settings state how the job runs independent of its scale, as JSON of nodewise.v1.ConfigurationSettings; empty = as in its evidence.
	Settings string
	// Objective is the objective of the recommendation.
	Objective Objective
}

// Check returns an error if the settings are invalid.
func (q Question) Check() error {
	_, err := q.settings()
	return err
}

func (q Question) settings() (*nodewisev1.ConfigurationSettings, error) {
	if q.Settings == "" {
		return nil, nil
	}
	found := &nodewisev1.ConfigurationSettings{}
	return found, protojson.Unmarshal([]byte(q.Settings), found)
}

// Objective is the objective of a recommendation, with its inputs.
type Objective struct {
	// Rule is highest-throughput, knee, least-time, least-cost or fewest-devices.
	Rule string
	// Share is the share of the rule knee; 0 = the server's default.
	Share float64
	// DeadlineSeconds is the time from now by which the work must be done; 0 = no deadline.
	DeadlineSeconds float64
	// Confidence is the probability of the interval's bound that decides; 0 = the predicted value itself decides.
	Confidence float64
	// Samples or Epochs is the remaining work; both 0 = that of the profile.
	Samples, Epochs float64
	// PricePerNodeHour is the price of a node for one hour; 0 = not known.
	PricePerNodeHour float64
}

func (o Objective) message() *nodewisev1.Objective {
	var found *nodewisev1.Objective
	switch o.Rule {
	case "knee":
		rule := &nodewisev1.Knee{}
		if o.Share != 0 {
			rule.Share = &o.Share
		}
		found = nodewise.Objective(rule)
	case "least-time":
		found = nodewise.Objective(&nodewisev1.LeastTime{})
	case "least-cost":
		rule := &nodewisev1.LeastCost{}
		if o.DeadlineSeconds != 0 {
			rule.DeadlineSeconds = &o.DeadlineSeconds
		}
		found = nodewise.Objective(rule)
	case "fewest-devices":
		found = nodewise.Objective(&nodewisev1.FewestDevices{DeadlineSeconds: o.DeadlineSeconds})
	default:
		found = nodewise.Objective(&nodewisev1.HighestThroughput{})
	}
	if o.Confidence != 0 {
		found.Confidence = &o.Confidence
	}
	return found
}

func (q Question) request(digest string, freshness nodewisev1.Freshness) *nodewisev1.PredictRequest {
	request := &nodewisev1.PredictRequest{
		Profile: nodewise.StoredProfile(q.Profile), Objective: q.Objective.message(), IfNoneMatch: digest,
		Options: &nodewisev1.PredictOptions{
			Model: &nodewisev1.ModelOptions{Freshness: freshness},
			Columns: []nodewisev1.PredictionColumn{
				nodewisev1.PredictionColumn_PREDICTION_COLUMN_MEMORY, nodewisev1.PredictionColumn_PREDICTION_COLUMN_WORK, nodewisev1.PredictionColumn_PREDICTION_COLUMN_INTERVAL,
			},
		},
	}
	if coverage := 2*q.Objective.Confidence - 1; coverage > 0 { // both bounds then hold with the confidence
		request.Options.Model.IntervalCoverage = &coverage
	}
	for device := range strings.SplitSeq(q.Devices, ",") {
		for _, axis := range q.axes() {
			if q.WorkersPerNode != 0 {
				axis.WorkersPerNode = &q.WorkersPerNode
			}
			axis.Settings, _ = q.settings() // Check reports errors
			if device != "" {
				if axis.Settings == nil {
					axis.Settings = &nodewisev1.ConfigurationSettings{}
				}
				axis.Settings.DeviceName = device
			}
			request.Ranges = append(request.Ranges, axis)
		}
	}
	if q.Objective.Samples != 0 {
		request.Work = &nodewisev1.Work{Amount: &nodewisev1.Work_Samples{Samples: q.Objective.Samples}}
	} else if q.Objective.Epochs != 0 {
		request.Work = &nodewisev1.Work{Amount: &nodewisev1.Work_Epochs{Epochs: q.Objective.Epochs}}
	}
	if q.Objective.PricePerNodeHour != 0 {
		request.Offers = []*nodewisev1.Offer{{PricePerNodeHour: q.Objective.PricePerNodeHour}}
	}
	return request
}

// axes returns the ranges of numbers of nodes. The contract has powers of two and steps, but not both in one range.
func (q Question) axes() (found []*nodewisev1.ConfigurationRange) {
	if q.Step > 1 && q.PowersOfTwo {
		for _, count := range q.Counts() {
			found = append(found, nodewise.NodeRange(count, count))
		}
		return found
	}
	axis := nodewise.NodeRange(q.First, q.Last)
	axis.GetNodes().PowersOfTwo = q.PowersOfTwo
	if q.Step > 1 {
		axis.GetNodes().Step = &q.Step
	}
	return append(found, axis)
}

// Point is the prediction for one device type and number of nodes.
type Point struct {
	// Nodes and Workers are its counts; Workers is 0 if the row was not answered.
	Nodes, Workers int32
	// Rate is the throughput in samples per second, or in steps per second if the batch is not known; 0 if the row was not answered.
	Rate float64
	// MemoryBytes is the memory of each device; 0 = not known. ExcessMemoryBytes is the memory missing on each device; above 0 only if the row
	// does not fit.
	MemoryBytes, ExcessMemoryBytes float64
	// FinishSeconds is the time until the work is done, UpperFinishSeconds the upper bound of that time, which holds with the confidence of the
	// objective, else with 95 %; 0 = not known.
	FinishSeconds, UpperFinishSeconds float64
	// Refusal is the reason why the row was refused; empty = it was answered, or does not fit.
	Refusal string
}

// Fits reports whether the row fits into memory, as far as is known.
func (p Point) Fits() bool { return p.ExcessMemoryBytes == 0 }

// Curve is the answer to a question. It is immutable.
type Curve struct {
	// Points are the rows by device type of the question, in order of nodes; the key is "" if the question names no device.
	Points map[string][]Point
	// Recommended is the recommended number of nodes; 0 = none meets the objective.
	Recommended int32
	// Device is the recommended device type, FinishSeconds the time that the work takes there (0 = no work is known).
	Device        string
	FinishSeconds float64
	// Bounded says that larger numbers of nodes, which may also pay, were not compared.
	Bounded bool
	// Why says how the rule chose, in one sentence with its numbers, or why nothing is recommended.
	Why string
	// Basis names the estimator and its evidence, e.g. "queueing 2.1, revision 3 of team-a/a1".
	Basis string
	// AskedAt is when the server last confirmed the curve.
	AskedAt time.Time
	digest  string
}

// Point returns the prediction for a device type and a number of nodes, and whether there is one.
func (c *Curve) Point(device string, nodes int32) (Point, bool) {
	for _, point := range c.Points[device] {
		if point.Nodes == nodes {
			return point, true
		}
	}
	return Point{}, false
}

// confirmed returns a copy with a new AskedAt.
func (c *Curve) confirmed(now time.Time) *Curve {
	same := *c
	same.AskedAt = now
	return &same
}

// errAbsurd is the error of a reply that does not answer the question that was asked.
var errAbsurd = errors.New("the answer of Nodewise does not fit the question, and is not used")

// read returns the curve of a reply. Rows are in the order of the question: by device, then by number of nodes.
func (q Question) read(reply *nodewisev1.PredictResponse, now time.Time) (*Curve, error) {
	basis, best := reply.GetBasis(), reply.GetRecommendation()
	rows := nodewise.RowsOf(reply.GetPredictions())
	counts := q.Counts()
	devices := strings.Split(q.Devices, ",")
	if rows.Len() > len(devices)*len(counts) || best != nil && (best.GetRow() < 0 || int(best.GetRow()) >= rows.Len()) || !isAmount(best.GetFinishSeconds()) {
		return nil, errAbsurd
	}
	curve := &Curve{
		Points: map[string][]Point{}, AskedAt: now, digest: basis.GetDigest(), Device: best.GetDeviceName(), Why: best.GetWhy(),
		FinishSeconds: best.GetFinishSeconds(), Bounded: best.GetBoundedBy() != nodewisev1.RecommendationBound_RECOMMENDATION_BOUND_UNSPECIFIED,
		Basis: fmt.Sprintf("%s %s, revision %d of %s", basis.GetEstimator(), basis.GetEstimatorVersion(), basis.GetProfileRevision(), q.Profile),
	}
	missing := 0.0
	if best != nil {
		curve.Recommended = counts[int(best.GetRow())%len(counts)]
	}
	for index, row := range rows.All() {
		device := devices[index/len(counts)]
		point := Point{Nodes: counts[index%len(counts)], Workers: row.Workers()}
		steps, stepsKnown := row.StepsPerSecond()
		if rate, known := row.SamplesPerSecond(); known {
			point.Rate = rate
		} else if stepsKnown {
			point.Rate = steps
		}
		point.MemoryBytes, _ = row.MemoryBytes()
		if row.Status() == nodewisev1.RowStatus_ROW_STATUS_INFEASIBLE_MEMORY {
			point.ExcessMemoryBytes, _ = row.ExcessMemoryBytes()
			point.ExcessMemoryBytes = max(point.ExcessMemoryBytes, 1)
			missing = max(missing, point.ExcessMemoryBytes)
		}
		if refusal := row.Refusal(); refusal != nil {
			point.Refusal = refusal.GetReason()
		}
		point.FinishSeconds, _ = row.FinishSeconds()
		if lower, known := row.LowerStepsPerSecond(); known && stepsKnown && lower > 0 {
			once, _ := row.OnceSeconds()
			point.UpperFinishSeconds = once + (point.FinishSeconds-once)*max(steps/lower, 1) // time is the inverse of throughput
		}
		for _, value := range []float64{point.Rate, point.MemoryBytes, point.ExcessMemoryBytes, point.FinishSeconds, point.UpperFinishSeconds} {
			if !isAmount(value) {
				return nil, errAbsurd
			}
		}
		curve.Points[device] = append(curve.Points[device], point)
	}
	if best == nil {
		curve.Why = "no allowed number of nodes meets the objective"
		for _, warning := range reply.GetPredictions().GetWarnings() {
			curve.Why += "; " + warning.GetMessage()
		}
	}
	if missing > 0 {
		curve.Why += fmt.Sprintf(" (some numbers of nodes do not fit into memory, by up to %.1f GB on each device)", missing/1e9)
	}
	return curve, nil
}

// isAmount reports whether a value is a number from 0 on.
func isAmount(value float64) bool { return value >= 0 && !math.IsInf(value, 1) }

// Counts returns the numbers of nodes of the question, in the order of the answer.
func (q Question) Counts() []int32 {
	var found []int32
	for count := q.First; count <= q.Last; count += max(q.Step, 1) {
		if !q.PowersOfTwo || count&(count-1) == 0 {
			found = append(found, count)
		}
	}
	return found
}
