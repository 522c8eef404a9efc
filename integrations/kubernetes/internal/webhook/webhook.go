// Package webhook chooses the number of nodes of new jobs whose owners ask for it. It never refuses a job, and states a reason for every change.
package webhook

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/nodewise/nodewise/integrations/kubernetes/internal/ask"
	"github.com/nodewise/nodewise/integrations/kubernetes/internal/jobs"
)

// Asker answers within its time-out, or from its cache.
type Asker interface {
	Ask(context.Context, ask.Question) (*ask.Curve, error)
	Cached(ask.Question) (*ask.Curve, error)
}

// runtimePatience is the longest wait to read the runtime of a TrainJob.
const runtimePatience = time.Second

// Handler answers admission requests for new jobs, and always allows them. It reads the runtimes of TrainJobs.
func Handler(asker Asker, runtimes client.Reader) admission.Handler {
	return admission.HandlerFunc(func(ctx context.Context, request admission.Request) admission.Response {
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(request.Object.Raw); err != nil {
			return admission.Allowed("Nodewise cannot read the object: " + err.Error())
		}
		reason, changed := Choose(ctx, asker, runtimes, object)
		if !changed {
			return admission.Allowed("")
		}
		text, err := json.Marshal(object)
		if err != nil {
			return admission.Allowed("Nodewise cannot write the object: " + err.Error())
		}
		response := admission.PatchResponseFromRaw(request.Object.Raw, text)
		if reason != "" {
			response.Warnings = []string{"Nodewise: " + reason} // kubectl prints it
		}
		return response
	})
}

// Choose writes the number of nodes and the reason into a job whose owner asks for it, and returns the reason. If no number is chosen, the
// reason says why.
func Choose(ctx context.Context, asker Asker, runtimes client.Reader, object *unstructured.Unstructured) (reason string, changed bool) {
	// Objects that an operator creates for a job follow the choice for that job.
	if object.GetAnnotations()[jobs.Profile] == "" || metav1.GetControllerOf(object) != nil {
		return "", false
	}
	annotations := map[string]string{}
	dropLimit(object)
	reason = jobs.Shorten(choose(ctx, asker, runtimes, object, annotations))
	if reason != "" {
		annotations[jobs.Reason] = reason
	}
	if len(annotations) > 0 {
		all := object.GetAnnotations()
		for _, name := range []string{jobs.FinishSeconds, jobs.Chosen, jobs.Requested, jobs.ExpectedFinish, jobs.Question, jobs.ExecutionSeconds} {
			delete(all, name) // it may come from a copied job
		}
		for name, value := range annotations {
			all[name] = value
		}
		object.SetAnnotations(all)
	}
	return reason, true
}

func choose(ctx context.Context, asker Asker, runtimes client.Reader, object *unstructured.Unstructured, annotations map[string]string) string {
	job, err := jobs.Of(object)
	if err != nil {
		return "did not change the nodes: " + err.Error()
	}
	defer func() { _ = job.AnnotatePods(forPods(object.GetAnnotations(), annotations)) }()
	if err := UseRuntime(ctx, runtimes, job, object.GetNamespace()); err != nil {
		return "did not change the nodes: " + err.Error()
	}
	before := job.Nodes()
	left := fmt.Sprintf("kept %s as written: ", jobs.CountOf(before))
	wish, err := jobs.WishOf(object.GetAnnotations())
	if err != nil {
		return left + err.Error()
	}
	if !wish.Chooses() {
		warm(asker, wish, job)
		return ""
	}
	if wish, err = job.Within(wish); err != nil {
		return left + err.Error()
	}
	device := cmp.Or(wish.Device, job.Device())
	curve, err := asker.Ask(ctx, wish.Question(device, job.DevicesPerNode()))
	if err != nil {
		return left + err.Error()
	}
	if curve.Recommended == 0 {
		return left + curve.Why
	}
	// A recommended row was answered, so it fits. This check holds even if that should change.
	point, known := curve.Point(device, curve.Recommended)
	if !known || !point.Fits() {
		return left + fmt.Sprintf("the recommended %d nodes do not fit into memory", curve.Recommended)
	}
	if err := job.SetNodes(int64(curve.Recommended)); err != nil {
		return left + err.Error()
	}
	annotations[jobs.Question] = jobs.QuestionKey(object.GetAnnotations())
	annotations[jobs.Chosen] = strconv.Itoa(int(curve.Recommended))
	annotations[jobs.Requested] = strconv.FormatInt(before, 10)
	if seconds := curve.FinishSeconds; seconds > 0 {
		annotations[jobs.FinishSeconds] = strconv.FormatFloat(math.Round(seconds), 'f', 0, 64)
	}
	limit := limitExecution(object, annotations, wish.ExecutionLimit, point.UpperFinishSeconds)
	return fmt.Sprintf("chose %s instead of %d: %s. By %s.%s", jobs.CountOf(int64(curve.Recommended)), before, curve.Why, curve.Basis, limit)
}

// limitExecution writes Kueue's limit of the execution time, a multiple of the upper bound of the predicted time, if the owner asks for one and
// has not set it. It returns a sentence about it.
func limitExecution(object *unstructured.Unstructured, annotations map[string]string, factor, upperSeconds float64) string {
	if factor == 0 {
		return ""
	}
	all := object.GetLabels()
	if own, stated := all[jobs.ExecutionLabel]; stated {
		return fmt.Sprintf(" The execution limit of %s s is the owner's.", own)
	}
	seconds := math.Ceil(factor * upperSeconds)
	if !(seconds > 0 && seconds <= math.MaxInt32) {
		return " There is no execution limit: the upper bound of the time is not known, or too long."
	}
	if all == nil {
		all = map[string]string{}
	}
	all[jobs.ExecutionLabel] = strconv.FormatFloat(seconds, 'f', 0, 64)
	annotations[jobs.ExecutionSeconds] = all[jobs.ExecutionLabel]
	object.SetLabels(all)
	return fmt.Sprintf(" The execution limit is %.0f s, %v times the upper bound of the time.", seconds, factor)
}

// dropLimit removes an execution limit that comes from a copied job.
func dropLimit(object *unstructured.Unstructured) {
	all := object.GetLabels()
	if own, stated := all[jobs.ExecutionLabel]; stated && own == object.GetAnnotations()[jobs.ExecutionSeconds] {
		delete(all, jobs.ExecutionLabel)
		object.SetLabels(all)
	}
}

// UseRuntime reads the runtime of a TrainJob. If it cannot be read and the TrainJob does not state its number of nodes, the error says why.
func UseRuntime(ctx context.Context, runtimes client.Reader, job *jobs.Job, namespace string) error {
	kind, name, has := job.Runtime()
	if !has {
		return nil
	}
	err := errors.New("there is no cluster to read it from")
	runtime := &unstructured.Unstructured{}
	runtime.SetGroupVersionKind(kind)
	key := client.ObjectKey{Name: name}
	if kind.Kind == "TrainingRuntime" {
		key.Namespace = namespace
	}
	if runtimes != nil {
		ctx, cancel := context.WithTimeout(ctx, runtimePatience)
		defer cancel()
		if err = runtimes.Get(ctx, key, runtime); err == nil {
			job.UseRuntime(runtime)
			return nil
		}
	}
	if job.RuntimeIsNeeded() {
		return fmt.Errorf("spec.trainer.numNodes is absent, and the %s %s, which may state the number of nodes, cannot be read: %w; state spec.trainer.numNodes", kind.Kind, name, err)
	}
	return nil // the TrainJob states its own number
}

// warm lets Nodewise fit its model now, so that the extender, which cannot wait, has an answer when the first pod arrives.
func warm(asker Asker, wish jobs.Wish, job *jobs.Job) {
	wish.First = int32(min(max(job.Nodes(), 1), math.MaxInt32))
	wish.Last, wish.Objective = wish.First, ask.Objective{}
	_, _ = asker.Cached(wish.Question(cmp.Or(wish.Device, job.Device()), job.DevicesPerNode()))
}

// forPods returns the annotations of pods that the extender and the collector read.
func forPods(all ...map[string]string) map[string]string {
	found := map[string]string{}
	for _, annotations := range all {
		for _, name := range []string{jobs.Profile, jobs.Nodes, jobs.Settings, jobs.Chosen, jobs.Elastic, jobs.Steps, jobs.Metrics, jobs.Container} {
			if value := annotations[name]; value != "" {
				found[name] = value
			}
		}
	}
	return found
}
