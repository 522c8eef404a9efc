// Package jobs knows the kinds of training jobs: the fields that hold the number of nodes, the pods' template and the end of each kind, and the
// annotations by which owners state their wishes.
package jobs

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/nodewise/nodewise/integrations/kubernetes/internal/ask"
)

// Prefix of all annotations and labels.
const Prefix = "nodewise.dev/"

// Annotations that owners set.
const (
	// Profile is the name of the job's stored profile. Jobs without it are ignored.
	Profile = Prefix + "profile"
	// Nodes are the allowed numbers of nodes: "1-16", or "pow2:1-16".
	Nodes = Prefix + "nodes"
	// Elastic = "true" lets the allocator change the number of nodes while the job runs.
	Elastic = Prefix + "elastic"
	// Steps is the pattern of lines that state the job's speed: a regular expression with a group named steps_per_second, step_seconds or step.
	// Metrics, ":PORT/PATH", is where the first pod serves these lines over HTTP; without it they are read from the log of Container.
	Steps     = Prefix + "steps-pattern"
	Metrics   = Prefix + "metrics"
	Container = Prefix + "container"
	// MetricsOfStatus as Metrics reads the lines from the metrics of a TrainJob's status.
	MetricsOfStatus = "status"
	// Query is a query in PromQL that yields the job's steps per second. Evaluation is the pattern of lines that an evaluation writes. TotalSteps
	// is the number of steps of the whole job.
	Query      = Prefix + "metrics-query"
	Evaluation = Prefix + "evaluation-pattern"
	TotalSteps = Prefix + "total-steps"

	objective        = Prefix + "objective"
	share            = Prefix + "share"
	deadlineSeconds  = Prefix + "deadline-seconds"
	confidence       = Prefix + "confidence"
	samples          = Prefix + "samples"
	epochs           = Prefix + "epochs"
	pricePerNodeHour = Prefix + "price-per-node-hour"
	deviceName       = Prefix + "device"
	// Settings state how the job runs independent of its scale, as JSON of nodewise.v1.ConfigurationSettings.
	Settings = Prefix + "settings"
	// check says what the admission check does with a job that fails it. executionLimit is the factor from the upper bound of the predicted time
	// to Kueue's limit of the time.
	check             = Prefix + "check"
	executionLimit    = Prefix + "execution-limit"
	replicatedJob     = Prefix + "replicated-job"
	workerGroup       = Prefix + "worker-group"
	mostNodesOfARange = 4096
)

// Annotations that Nodewise sets.
const (
	// Reason says why this number of nodes was chosen, or why none was.
	Reason = Prefix + "reason"
	// Chosen is the chosen number of nodes, on the job and on its pods.
	Chosen = Prefix + "chosen-nodes"
	// Requested is the number of nodes that the owner wrote.
	Requested = Prefix + "requested-nodes"
	// Question identifies what the owner asked when the number of nodes was chosen.
	Question = Prefix + "question"
	// ExecutionSeconds is the limit that was written into ExecutionLabel.
	ExecutionSeconds = Prefix + "execution-seconds"
	// FinishSeconds is the predicted run time on the chosen nodes. ExpectedFinish is the expected end, once the job runs.
	FinishSeconds  = Prefix + "finish-seconds"
	ExpectedFinish = Prefix + "expected-finish"
	// ResizedAt is when the allocator last changed the number of nodes.
	ResizedAt = Prefix + "resized-at"
)

// ExecutionLabel is Kueue's label for the longest time that a job may run.
const ExecutionLabel = "kueue.x-k8s.io/max-exec-time-seconds"

// Values of the annotation check: a job that fails the admission check is admitted, waits in the queue, or is rejected.
const (
	Advise = "advise"
	Retry  = "retry"
	Reject = "reject"
)

var rules = []string{"knee", "highest-throughput", "least-time", "least-cost", "fewest-devices"}

// longestReason is in bytes. A reason quotes invalid values, and the API server refuses an object with more than 256 KiB of annotations.
const longestReason = 2048

// Shorten cuts a reason to a length that every object has room for.
func Shorten(reason string) string {
	if len(reason) <= longestReason {
		return reason
	}
	return strings.ToValidUTF8(reason[:longestReason], "") + "..."
}

// Wish is the content of an owner's annotations.
type Wish struct {
	// Profile is the name of the stored profile; empty = the job is ignored.
	Profile string
	// First and Last are the lowest and highest allowed numbers of nodes; 0 = the owner does not want them chosen.
	First, Last int32
	PowersOfTwo bool
	// Step is the number of nodes by which the job changes; 0 = 1.
	Step int32
	// Elastic says that the number of nodes may change while the job runs.
	Elastic bool
	// Device is the device type that the owner states; empty = that of the pods' node selector, else of the evidence.
	Device    string
	Settings  string
	Objective ask.Objective
	// Check is Advise, Retry or Reject.
	Check string
	// ExecutionLimit is the factor from the upper bound of the predicted time to Kueue's limit, at least 1; 0 = no limit.
	ExecutionLimit float64
}

// asking are the annotations that decide the number of nodes.
var asking = []string{Profile, Nodes, objective, share, deadlineSeconds, confidence, samples, epochs, pricePerNodeHour, deviceName, Settings, executionLimit}

// QuestionKey identifies what an owner asks. It changes only if one of the annotations does.
func QuestionKey(annotations map[string]string) string {
	hash := sha256.New()
	for _, name := range asking {
		if value, stated := annotations[name]; stated {
			fmt.Fprintf(hash, "%s %q\n", name, value)
		}
	}
	return hex.EncodeToString(hash.Sum(nil)[:8])
}

// Chooses reports whether the owner wants a number of nodes chosen.
func (w Wish) Chooses() bool { return w.Profile != "" && w.Last != 0 }

// Question returns the question about the job, whose pods use the given number of devices each.
func (w Wish) Question(device string, devicesPerNode int32) ask.Question {
	return ask.Question{
		Profile: w.Profile, Devices: device, WorkersPerNode: devicesPerNode, First: w.First, Last: w.Last, PowersOfTwo: w.PowersOfTwo, Step: w.Step, Settings: w.Settings,
		Objective: w.Objective,
	}
}

// WishOf reads annotations. The error names an invalid one and says what is valid.
func WishOf(annotations map[string]string) (Wish, error) {
	wish := Wish{Profile: annotations[Profile], Elastic: annotations[Elastic] == "true", Device: annotations[deviceName], Settings: annotations[Settings]}
	wish.Objective.Rule = annotations[objective]
	if wish.Objective.Rule == "" {
		wish.Objective.Rule = rules[0]
	}
	if !slices.Contains(rules, wish.Objective.Rule) {
		return wish, fmt.Errorf("annotation %s is %q; give one of %s", objective, wish.Objective.Rule, strings.Join(rules, ", "))
	}
	wish.Check = cmp.Or(annotations[check], Advise)
	if !slices.Contains([]string{Advise, Retry, Reject}, wish.Check) {
		return wish, fmt.Errorf("annotation %s is %q; give %s, %s or %s", check, wish.Check, Advise, Retry, Reject)
	}
	if strings.Contains(wish.Device, ",") {
		return wish, fmt.Errorf("annotation %s is %q; give one device type, e.g. A100", deviceName, wish.Device)
	}
	for _, number := range []struct {
		name  string
		value *float64
		most  float64
	}{
		{share, &wish.Objective.Share, 1}, {deadlineSeconds, &wish.Objective.DeadlineSeconds, math.MaxFloat64},
		{confidence, &wish.Objective.Confidence, 0.9999}, {samples, &wish.Objective.Samples, math.MaxFloat64},
		{epochs, &wish.Objective.Epochs, math.MaxFloat64}, {pricePerNodeHour, &wish.Objective.PricePerNodeHour, math.MaxFloat64},
		{executionLimit, &wish.ExecutionLimit, math.MaxFloat64},
	} {
		text, given := annotations[number.name]
		if !given {
			continue
		}
		found, err := strconv.ParseFloat(text, 64)
		if err != nil || !(found > 0 && found <= number.most) {
			return wish, fmt.Errorf("annotation %s is %q; give a number above 0%s", number.name, text, upTo(number.most))
		}
		*number.value = found
	}
	if wish.ExecutionLimit > 0 && wish.ExecutionLimit < 1 {
		return wish, fmt.Errorf("annotation %s is %v; give a number of at least 1", executionLimit, wish.ExecutionLimit)
	}
	if err := wish.readNodes(annotations[Nodes]); err != nil {
		return wish, err
	}
	if err := wish.Question("", 0).Check(); err != nil {
		return wish, fmt.Errorf("annotation %s is not JSON of nodewise.v1.ConfigurationSettings, such as {\"zero_stage\": 3}: %w", Settings, err)
	}
	return wish, nil
}

func upTo(most float64) string {
	if most == math.MaxFloat64 {
		return ""
	}
	return fmt.Sprintf(", at most %v", most)
}

func (w *Wish) readNodes(text string) error {
	if text == "" {
		return nil
	}
	rest, powers := strings.CutPrefix(text, "pow2:")
	first, last, ranged := strings.Cut(rest, "-")
	if !ranged {
		last = first
	}
	low, wrong := strconv.ParseInt(first, 10, 32)
	high, alsoWrong := strconv.ParseInt(last, 10, 32)
	if wrong != nil || alsoWrong != nil || low < 1 || high < low || high-low >= mostNodesOfARange {
		return fmt.Errorf("annotation %s is %q; give a range such as \"1-16\" or \"pow2:1-16\"", Nodes, text)
	}
	w.First, w.Last, w.PowersOfTwo = int32(low), int32(high), powers
	return nil
}
