package allocator

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	nodewisev1 "github.com/nodewise/nodewise/clients/go/gen/nodewise/v1"

	"github.com/nodewise/nodewise/integrations/kubernetes/internal/ask"
	"github.com/nodewise/nodewise/integrations/kubernetes/internal/jobs"
)

type nothingKnown struct{}

func (nothingKnown) Cached(ask.Question) (*ask.Curve, error) { return nil, ask.ErrNoAnswerYet }

func read[Kind any](t *testing.T, text string) *Kind {
	t.Helper()
	found := new(Kind)
	if err := yaml.Unmarshal([]byte(text), found); err != nil {
		t.Fatal(err)
	}
	return found
}

func elasticJob(annotations, spec, podMetadata string) string {
	return `{metadata: {name: a, namespace: team, uid: u, annotations: {nodewise.dev/profile: p, nodewise.dev/nodes: 1-8, nodewise.dev/elastic: "true"` + annotations + `}},
		spec: {` + spec + `, template: {metadata: ` + podMetadata + `, spec: {containers: [{name: c, resources: {limits: {nvidia.com/gpu: 8}}}]}}}}`
}

// A job gets the nodes that it allows while it runs, and dependent fields change too; otherwise an event says why it is not changed.
func TestAnElasticJobStaysValid(t *testing.T) {
	const slicesOfTwo = `{annotations: {kueue.x-k8s.io/podset-slice-size: "2", kueue.x-k8s.io/podset-slice-required-topology: rack}}`
	for name, test := range map[string]struct {
		job     string
		allowed []int32 // devices that Nodewise may give; nil = it is not asked
		after   string  // of the specification, with as many nodes as allowed first
		event   string
	}{
		"together":          {elasticJob("", "parallelism: 8, completions: 8, completionMode: Indexed, backoffLimitPerIndex: 1, maxFailedIndexes: 5", "{}"), []int32{8, 16, 24, 32, 40, 48, 56, 64}, "parallelism 1, completions 1, maxFailedIndexes 1", "gave 1 node instead of 8"},
		"slices":            {elasticJob("", "parallelism: 8, completions: 8, completionMode: Indexed", slicesOfTwo), []int32{16, 32, 48, 64}, "parallelism 2, completions 2", "gave 2 nodes instead of 8"},
		"list of work":      {elasticJob("", "parallelism: 4, completions: 6", "{}"), []int32{8, 16, 24, 32, 40, 48}, "parallelism 1, completions 6", "gave 1 node instead of 4"},
		"partial admission": {elasticJob(`, kueue.x-k8s.io/job-min-parallelism: "2"`, "parallelism: 8", "{}"), nil, "parallelism 8", "kept 8 nodes: Kueue controls spec.parallelism because of annotation kueue.x-k8s.io/job-min-parallelism"},
		"all must succeed":  {elasticJob("", "parallelism: 8, completions: 8, completionMode: Indexed, successPolicy: {rules: [{succeededIndexes: 0-7}]}", "{}"), nil, "parallelism 8, completions 8", "kept 8 nodes: spec.successPolicy.rules[].succeededIndexes would have to change"},
		"not indexed":       {elasticJob("", "parallelism: 8, completions: 8", "{}"), nil, "parallelism 8, completions 8", "kept 8 nodes: spec.completions would have to change"},
	} {
		t.Run(name, func(t *testing.T) {
			node := read[corev1.Node](t, `{metadata: {name: m, labels: {nvidia.com/gpu.product: V100}}, status: {allocatable: {nvidia.com/gpu: 8}}}`)
			cluster := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(read[batchv1.Job](t, test.job), node).Build()
			var allowed []int32
			all := &Allocator{Cluster: cluster, Curves: nothingKnown{}, Schedule: func(_ context.Context, request *nodewisev1.ScheduleRequest) (*nodewisev1.ScheduleResponse, error) {
				allowed = request.GetJobs()[0].GetAllowedDevices()
				return &nodewisev1.ScheduleResponse{Allocations: []*nodewisev1.JobAllocation{{
					JobId: request.GetJobs()[0].GetJobId(), Action: nodewisev1.ScheduleAction_SCHEDULE_ACTION_CHANGE, DevicesCount: allowed[0], Why: "because",
				}}}, nil
			}}
			for range 2 { // a second round finds what the first has made
				if err := all.Decide(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if !slices.Equal(allowed, test.allowed) {
				t.Error("allowed are", allowed)
			}
			job, events := &batchv1.Job{}, &corev1.EventList{}
			if err := cluster.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "a"}, job); err != nil {
				t.Fatal(err)
			}
			after := fmt.Sprint("parallelism ", *job.Spec.Parallelism)
			if job.Spec.Completions != nil {
				after += fmt.Sprintf(", completions %d", *job.Spec.Completions)
			}
			if job.Spec.MaxFailedIndexes != nil {
				after += fmt.Sprintf(", maxFailedIndexes %d", *job.Spec.MaxFailedIndexes)
			}
			if after != test.after || (test.allowed == nil) != (job.Annotations[jobs.Chosen] == "") {
				t.Error(after, job.Annotations)
			}
			if err := cluster.List(t.Context(), events); err != nil || len(events.Items) != 1 || !strings.HasPrefix(events.Items[0].Message, test.event) {
				t.Error(err, events.Items)
			}
		})
	}
}
