// Package webhook chooses the number of nodes of jobs as they are submitted, where their owners ask for it. It never refuses a job, and never
// changes one without saying why.
package webhook

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/nodewise/nodewise/integrations/kubernetes/internal/ask"
	"github.com/nodewise/nodewise/integrations/kubernetes/internal/jobs"
)

// Asker answers within its time-out, or at once.
type Asker interface {
	Ask(context.Context, ask.Question) (*ask.Curve, error)
	Cached(ask.Question) (*ask.Curve, error)
}

// Handler answers admission requests of new jobs: always allowed.
func Handler(asker Asker) admission.Handler {
	return admission.HandlerFunc(func(ctx context.Context, request admission.Request) admission.Response {
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(request.Object.Raw); err != nil {
			return admission.Allowed("Nodewise cannot read the object: " + err.Error())
		}
		told, changed := Choose(ctx, asker, object)
		if !changed {
			return admission.Allowed("")
		}
		text, err := json.Marshal(object)
		if err != nil {
			return admission.Allowed("Nodewise cannot write the object: " + err.Error())
		}
		response := admission.PatchResponseFromRaw(request.Object.Raw, text)
		if told != "" {
			response.Warnings = []string{"Nodewise: " + told} // kubectl prints it
		}
		return response
	})
}

// Choose writes the number of nodes and why into a job whose owner asks for it, and tells what is in the reason. Where nothing is chosen the reason
// says why.
func Choose(ctx context.Context, asker Asker, object *unstructured.Unstructured) (told string, changed bool) {
	// What an operator makes of a job was chosen with the job.
	if object.GetAnnotations()[jobs.Profile] == "" || metav1.GetControllerOf(object) != nil {
		return "", false
	}
	annotations := map[string]string{}
	told = choose(ctx, asker, object, annotations)
	if told != "" {
		annotations[jobs.Reason] = told
	}
	if len(annotations) > 0 {
		all := object.GetAnnotations()
		delete(all, jobs.FinishSeconds) // of the job that this one was copied from, as are these:
		delete(all, jobs.Chosen)
		delete(all, jobs.Requested)
		delete(all, jobs.ExpectedFinish)
		for name, value := range annotations {
			all[name] = value
		}
		object.SetAnnotations(all)
	}
	return told, true
}

func choose(ctx context.Context, asker Asker, object *unstructured.Unstructured, annotations map[string]string) string {
	job, err := jobs.Of(object)
	if err != nil {
		return "left the nodes as they are: " + err.Error()
	}
	defer func() { _ = job.AnnotatePods(forPods(object.GetAnnotations(), annotations)) }()
	before := job.Nodes()
	left := fmt.Sprintf("left %s: ", asWritten(before))
	wish, err := jobs.WishOf(object.GetAnnotations())
	if err != nil {
		return left + err.Error()
	}
	if !wish.Chooses() {
		warm(asker, wish, job)
		return ""
	}
	least, most := job.Bounds()
	wish.First = max(wish.First, int32(least))
	if most > 0 {
		wish.Last = min(wish.Last, int32(most))
	}
	if wish.First > wish.Last {
		return left + fmt.Sprintf("no number of nodes is both in annotation %s and in the job's own bounds, %d to %d", jobs.Nodes, least, most)
	}
	device := cmp.Or(wish.Device, job.Device())
	curve, err := asker.Ask(ctx, wish.Question(device, job.DevicesPerNode()))
	if err != nil {
		return left + err.Error()
	}
	if curve.Recommended == 0 {
		return left + curve.Why
	}
	// A recommendation is a row that was answered, so one that fits; this holds even if that should change.
	point, known := curve.Point(device, curve.Recommended)
	if !known || !point.Fits() {
		return left + fmt.Sprintf("%d nodes were recommended, but do not fit into memory", curve.Recommended)
	}
	if err := job.SetNodes(int64(curve.Recommended)); err != nil {
		return left + err.Error()
	}
	annotations[jobs.Chosen] = strconv.Itoa(int(curve.Recommended))
	annotations[jobs.Requested] = strconv.FormatInt(before, 10)
	if seconds := curve.FinishSeconds; seconds > 0 {
		annotations[jobs.FinishSeconds] = strconv.FormatFloat(math.Round(seconds), 'f', 0, 64)
	}
	return fmt.Sprintf("chose %s instead of %d: %s. By %s.", countOf(int64(curve.Recommended)), before, curve.Why, curve.Basis)
}

// warm has Nodewise fit its model now, so that the extender, which cannot wait, has an answer when the first pod is there.
func warm(asker Asker, wish jobs.Wish, job *jobs.Job) {
	wish.First = int32(min(max(job.Nodes(), 1), math.MaxInt32))
	wish.Last, wish.Objective = wish.First, ask.Objective{}
	_, _ = asker.Cached(wish.Question(cmp.Or(wish.Device, job.Device()), job.DevicesPerNode()))
}

func asWritten(nodes int64) string {
	if nodes == 1 {
		return "1 node, as it is written"
	}
	return fmt.Sprintf("%d nodes, as they are written", nodes)
}

func countOf(nodes int64) string {
	if nodes == 1 {
		return "1 node"
	}
	return fmt.Sprintf("%d nodes", nodes)
}

// forPods are the annotations that the extender and the collector read on pods.
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
