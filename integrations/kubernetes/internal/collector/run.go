package collector

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodewise/nodewise/integrations/kubernetes/internal/jobs"
)

// mostWarmUp is the greatest part of a whole run that the warm-up may be.
const mostWarmUp = 0.05

// wholeRun returns the speed of a completed job over its whole run: nil if a window was observed, the job restarted or was resized, it was too
// short, or its steps are not known. over says that nothing more will be known of the job.
func (c *Collector) wholeRun(ctx context.Context, past *history) (found *Sample, over bool, err error) {
	of := past.job
	if len(of.owners) == 0 || past.observed || past.interrupted {
		return nil, true, nil
	}
	for index, owner := range of.owners {
		now := &unstructured.Unstructured{}
		now.SetGroupVersionKind(owner.GroupVersionKind())
		switch err := c.Cluster.Get(ctx, client.ObjectKeyFromObject(owner), now); {
		case err == nil && now.GetUID() == owner.GetUID():
			of.owners[index] = now
		case err != nil && !apierrors.IsNotFound(err):
			return nil, false, err
		case index == len(of.owners)-1: // it was deleted; its parts may end before it
			return nil, true, nil
		}
	}
	completed, over := of.completed()
	if completed.IsZero() || of.restarts() > 0 {
		return nil, over, nil
	}
	took := completed.Sub(of.begun())
	steps, err := of.totalSteps()
	if err != nil || steps == 0 || took <= 0 || c.WarmUp.Seconds() > mostWarmUp*took.Seconds() {
		return nil, true, err
	}
	return &Sample{StepsPerSecond: steps / took.Seconds(), Steps: int32(min(steps, math.MaxInt32)), At: completed, Source: fromRun}, true, nil
}

// completed returns when a job completed; zero = it has not, or failed. over says that it has ended.
func (j *job) completed() (at time.Time, over bool) {
	last := j.owners[len(j.owners)-1]
	if last.GetKind() == "RayJob" {
		switch textOf(last, "status", "jobStatus") {
		case "SUCCEEDED":
			return timeOf(last, "status", "rayJobInfo", "endTime"), true
		case "FAILED", "STOPPED":
			return at, true
		}
		return at, false
	}
	conditions, _, _ := unstructured.NestedSlice(last.Object, "status", "conditions")
	for _, each := range conditions {
		condition, _ := each.(map[string]any)
		if condition["status"] != "True" {
			continue
		}
		switch condition["type"] {
		case "Complete", "Completed", "Succeeded": // of Job and TrainJob, JobSet, PyTorchJob
			text, _ := condition["lastTransitionTime"].(string)
			at, _ = time.Parse(time.RFC3339, text)
			return at, true
		case "Failed":
			return at, true
		}
	}
	return at, false
}

// totalSteps returns the number of steps of the whole job that its owner states; 0 = not stated.
func (j *job) totalSteps() (float64, error) {
	if text := j.annotations[jobs.TotalSteps]; text != "" {
		steps, err := strconv.ParseFloat(text, 64)
		if err != nil || !(steps > 0) || math.IsInf(steps, 0) {
			return 0, fmt.Errorf("annotation %s is %q; give a number above 0", jobs.TotalSteps, text)
		}
		return steps, nil
	}
	wish, err := jobs.WishOf(j.annotations)
	if err != nil {
		return 0, err
	}
	settings, err := j.settings()
	if err != nil || settings.GetGlobalBatchSamples() == 0 {
		return 0, err
	}
	return wish.Objective.Samples / float64(settings.GetGlobalBatchSamples()), nil
}
