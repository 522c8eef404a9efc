package collector

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"regexp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/nodewise/nodewise/integrations/kubernetes/internal/jobs"
)

// Sources of observations, of which each job has one.
const (
	fromQuery  = "query"
	fromLog    = "log"
	fromHTTP   = "metrics"
	fromStatus = "status"
	fromRun    = "whole run"
)

// source returns what a job's speed is read from. Its annotations choose, and a TrainJob without them states its own progress; there is no
// second source for a window that the first one leaves out.
func (j *job) source() (string, error) {
	switch metrics := j.annotations[jobs.Metrics]; {
	case j.annotations[jobs.Query] != "":
		return fromQuery, nil
	case metrics == jobs.MetricsOfStatus && j.owner("TrainJob") == nil:
		return "", fmt.Errorf("annotation %s is %s, but the pods belong to no TrainJob; give \":PORT/PATH\"", jobs.Metrics, metrics)
	case metrics == jobs.MetricsOfStatus, j.annotations[jobs.Steps] == "" && j.owner("TrainJob") != nil:
		return fromStatus, nil
	case j.annotations[jobs.Steps] == "":
		return fromRun, nil
	case metrics != "":
		return fromHTTP, nil
	}
	return fromLog, nil
}

// percentOfSteps is what a TrainJob's progress is.
const percentOfSteps = "percent"

// Names of the current step in the metrics of a TrainJob's status, the first as Transformers writes it; and of its evaluations.
const (
	statusSteps      = `^(?:current_step|global_step|step) (?P<step>\S+)$`
	statusEvaluation = `^eval_`
)

// read returns the speed of a job in the window that has just ended, or since an earlier one; nil = it is not known, or part of that time was
// before from.
func (c *Collector) read(ctx context.Context, of *job, past *history, from, end time.Time) (found *Sample, err error) {
	source, err := of.source()
	if err != nil || source == fromRun {
		return nil, err
	}
	begin := end.Add(-c.Window)
	switch inTime := !begin.Before(from); {
	case source == fromQuery && inTime:
		found, err = c.query(ctx, of, end)
	case source == fromLog && inTime:
		found, err = c.readLog(ctx, of, begin, end)
	case source == fromHTTP, source == fromStatus:
		found, err = c.readPresent(ctx, of, past, from, end)
	}
	if found != nil {
		found.Source = source
	}
	return found, err
}

// pattern returns how lines state the speed and the evaluations of a job; the defaults are for a job without these annotations.
func (j *job) pattern(steps, evaluation string) (Pattern, error) {
	pattern, err := ParsePattern(cmp.Or(j.annotations[jobs.Steps], steps))
	if err != nil {
		return pattern, err
	}
	return pattern.evaluating(cmp.Or(j.annotations[jobs.Evaluation], evaluation))
}

// readLog returns the speed according to the log of the first pod in a window; of a RayJob, of its driver, unless the owner names a container of the
// first pod.
func (c *Collector) readLog(ctx context.Context, of *job, begin, end time.Time) (*Sample, error) {
	pattern, err := of.pattern("", "")
	if err != nil {
		return nil, err
	}
	pod, container, since, most := of.pods[0], of.annotations[jobs.Container], metav1.NewTime(begin), mostLogBytes
	if of.driver != nil && (container == "" || container == of.driverContainer) {
		pod, container = of.driver, of.driverContainer
	}
	options := &corev1.PodLogOptions{Container: container, SinceTime: &since, Timestamps: true, LimitBytes: &most}
	stream, err := c.Logs.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, options).Stream(ctx)
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	points, evaluated, err := pattern.read(stream, true, begin, end)
	if err != nil || evaluated != "" {
		return nil, err
	}
	found, enough := pattern.sample(points, begin, end)
	if !enough {
		return nil, nil
	}
	found.At = end
	return &found, nil
}

// reading is a number that a source states of the present.
type reading struct {
	point
	// name says what the number is: steps per second, the current step, or a percentage of all steps.
	name string
	// steps is the number of steps in one of a count; 0 = the number is no count.
	steps float64
	// evaluated is the digest of the lines of evaluations, which may be megabytes. There was one if they change.
	evaluated [sha256.Size]byte
}

// leastCounted and leastTook are the least difference of a count that is converted to a speed, and of its times, which may be whole seconds.
// Smaller ones may be wrong by more than 5 %.
const leastCounted, leastTook = 20, 20 * time.Second

// readPresent returns the speed according to metrics or a status, which state the present number only: a speed, or a count that is compared with
// that of an earlier window.
func (c *Collector) readPresent(ctx context.Context, of *job, past *history, from, end time.Time) (*Sample, error) {
	now, err := c.present(ctx, of, end)
	if err == nil && now != nil && now.at.After(end.Add(c.Window)) {
		err = fmt.Errorf("status.trainerStatus.lastUpdatedTime is %s, which is in the future; set the clock of the pod's node", now.at.Format(time.RFC3339))
	}
	if err != nil || now == nil || now.at.Before(from) || past.latest != nil && !now.at.After(past.latest.at) {
		return nil, err
	}
	latest := past.latest
	past.latest = now
	switch {
	case latest == nil, now.name != latest.name, now.steps != latest.steps:
		past.start = now
	case now.evaluated != latest.evaluated, now.steps > 0 && now.value < latest.value, now.name == stepNumber && now.value == latest.value:
		past.start = now // there was an evaluation, the count started again, or no step was made
		return nil, nil
	}
	if now.steps == 0 {
		if begin := end.Add(-c.Window); now.value <= 0 || now.at.Before(begin) || begin.Before(from) {
			return nil, nil
		}
		return &Sample{StepsPerSecond: now.value, At: now.at}, nil
	}
	counted, took := now.value-past.start.value, now.at.Sub(past.start.at)
	if counted < leastCounted || took < leastTook {
		return nil, nil
	}
	past.start = now
	steps := counted * now.steps
	return &Sample{StepsPerSecond: steps / took.Seconds(), Steps: int32(min(steps, math.MaxInt32)), At: now.at}, nil
}

// placeOfMetrics is where a pod serves metrics: a port and a path. podClient asks pods, which may not send it elsewhere.
var (
	placeOfMetrics = regexp.MustCompile(`^:(\d+)((?:/.*)?)$`)
	podClient      = http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
)

// present returns what the source states now; nil = nothing.
func (c *Collector) present(ctx context.Context, of *job, end time.Time) (*reading, error) {
	source, err := of.source()
	if err != nil {
		return nil, err
	}
	if source == fromStatus {
		return of.status()
	}
	pattern, err := of.pattern("", "")
	if err != nil {
		return nil, err
	}
	place := placeOfMetrics.FindStringSubmatch(of.annotations[jobs.Metrics])
	if place == nil {
		return nil, fmt.Errorf("annotation %s is %q; give \":PORT/PATH\"", jobs.Metrics, of.annotations[jobs.Metrics])
	}
	url := "http://" + net.JoinHostPort(of.pods[0].Status.PodIP, place[1]) + place[2]
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	reply, err := podClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", url, reply.Status)
	}
	return pattern.present(io.LimitReader(reply.Body, mostLogBytes), end)
}

// present returns the first number in lines; nil = there is none.
func (p Pattern) present(lines io.Reader, now time.Time) (*reading, error) {
	points, evaluated, err := p.read(lines, false, now, now)
	if err != nil || len(points) == 0 {
		return nil, err
	}
	found := &reading{point: points[0], name: p.name, evaluated: sha256.Sum256([]byte(evaluated))}
	switch {
	case p.name == stepNumber:
		found.steps = 1
	case p.name == stepSeconds && found.value > 0:
		found.name, found.value = stepsPerSecond, 1/found.value
	}
	return found, nil
}

// status returns what a TrainJob's trainer reports: the metric that the job names, else a metric of the current step, else its progress, if
// the steps of the whole job are known; nil = none of these.
func (j *job) status() (*reading, error) {
	pattern, err := j.pattern(statusSteps, statusEvaluation)
	if err != nil {
		return nil, err
	}
	train := j.owner("TrainJob")
	at, lines := timeOf(train, "status", "trainerStatus", "lastUpdatedTime"), &strings.Builder{}
	metrics, _, _ := unstructured.NestedSlice(train.Object, "status", "trainerStatus", "metrics")
	for _, each := range metrics {
		if metric, isMap := each.(map[string]any); isMap {
			fmt.Fprintln(lines, metric["name"], metric["value"])
		}
	}
	found, err := pattern.present(strings.NewReader(lines.String()), at)
	if err != nil || found != nil || j.annotations[jobs.Steps] != "" {
		return found, err
	}
	total, err := j.totalSteps()
	percentage, stated, _ := unstructured.NestedInt64(train.Object, "status", "trainerStatus", "progressPercentage")
	if err != nil || !stated || total == 0 {
		return nil, err
	}
	return &reading{point: point{at, float64(percentage)}, name: percentOfSteps, steps: total / 100}, nil
}
