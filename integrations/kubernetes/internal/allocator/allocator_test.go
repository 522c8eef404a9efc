package allocator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
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

const queue = `{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {name: q}, spec: {resourceGroups: [{coveredResources: [cpu, nvidia.com/gpu],
	flavors: [{name: f, resources: [{name: cpu, nominalQuota: 9}, {name: nvidia.com/gpu, nominalQuota: "32"}]}]}]}}`

// admitted is a workload of a job that Kueue admitted with 8 devices for each pod; more are further fields of its status.
func admitted(name, job string, count, now int, more string) string {
	return fmt.Sprintf(`{apiVersion: kueue.x-k8s.io/v1beta2, kind: Workload, metadata: {name: %s, namespace: team, ownerReferences: [{apiVersion: batch/v1, kind: Job, name: j, uid: %s, controller: true}]},
		spec: {podSets: [{name: main, count: %d}]}, status: {%s admission: {clusterQueue: q, podSetAssignments: [
			{name: main, count: %d, flavors: {cpu: f, nvidia.com/gpu: f}, resourceUsage: {cpu: 1, nvidia.com/gpu: %d}}]}}}`, name, job, now, more, count, 8*count)
}

// Jobs share the nominal quota of their ClusterQueue without what other workloads hold of it, but at least what they hold.
func TestQuotasOfKueue(t *testing.T) {
	const ended, waiting = `conditions: [{type: Finished, status: "True", reason: r, message: m, lastTransitionTime: "2026-01-01T00:00:00Z"}],`, `{apiVersion: kueue.x-k8s.io/v1beta2, kind: Workload, metadata: {name: w, namespace: team}}`
	const podOfJob = `{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: team, ownerReferences: [{apiVersion: batch/v1, kind: Job, name: a, uid: u, controller: true}]}, spec: {nodeName: m}}`
	forbidden := apierrors.NewForbidden(schema.GroupResource{Group: "kueue.x-k8s.io", Resource: "workloads"}, "", errors.New("no"))
	absent := &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "kueue.x-k8s.io", Kind: "Workload"}}
	for name, test := range map[string]struct {
		kueue  []string
		failed error // of reading workloads
		most   int32 // devices of the queue; -1 = there is no quota
	}{
		"alone":                     {[]string{queue, admitted("a", "u", 1, 1, ""), waiting}, nil, 32},
		"others":                    {[]string{queue, admitted("a", "u", 1, 1, ""), admitted("b", "v", 2, 2, "")}, nil, 16},
		"another job shrank":        {[]string{queue, admitted("a", "u", 1, 1, ""), admitted("b", "v", 3, 1, "")}, nil, 24},
		"another job's pods ended":  {[]string{queue, admitted("a", "u", 1, 1, ""), admitted("b", "v", 3, 3, "reclaimablePods: [{name: main, count: 2}],")}, nil, 24},
		"another job ended":         {[]string{queue, admitted("a", "u", 1, 1, ""), admitted("b", "v", 3, 3, ended)}, nil, 32},
		"borrowed":                  {[]string{queue, admitted("a", "u", 3, 3, ""), admitted("b", "v", 2, 2, "")}, nil, 24},
		"two slices":                {[]string{queue, admitted("a", "u", 4, 4, ""), admitted("b", "u", 5, 5, "")}, nil, 40},
		"between two slices":        {[]string{queue, admitted("a", "u", 1, 1, ended), waiting, admitted("b", "v", 1, 1, "")}, nil, 24},
		"borrowed, between slices":  {[]string{queue, admitted("a", "u", 1, 1, ended), waiting, admitted("b", "v", 4, 4, ""), podOfJob}, nil, 8},
		"after several slices":      {[]string{queue, admitted("a", "u", 6, 6, ended), admitted("b", "u", 1, 1, ""), admitted("c", "u", 6, 6, ended)}, nil, 32},
		"not admitted":              {[]string{queue, waiting}, nil, -1},
		"no queue":                  {[]string{admitted("a", "u", 1, 1, "")}, nil, -1},
		"no rights":                 {[]string{queue, admitted("a", "u", 1, 1, "")}, forbidden, -1},
		"no Kueue":                  {nil, absent, -1},
		"another failure of a call": {[]string{queue, admitted("a", "u", 1, 1, "")}, errors.New("timeout"), 0},
	} {
		t.Run(name, func(t *testing.T) {
			job := read[batchv1.Job](t, elasticJob("", "parallelism: 1, completions: 1, completionMode: Indexed", "{}"))
			job.Labels = map[string]string{"kueue.x-k8s.io/queue-name": "local"}
			objects := []client.Object{job}
			for _, text := range test.kueue {
				objects = append(objects, &unstructured.Unstructured{Object: *read[map[string]any](t, text)})
			}
			cluster := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
				List: func(ctx context.Context, inner client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
					if _, is := list.(*unstructured.UnstructuredList); is && test.failed != nil {
						return test.failed
					}
					return inner.List(ctx, list, options...)
				},
			}).Build()
			var request *nodewisev1.ScheduleRequest
			all := &Allocator{Cluster: cluster, Curves: nothingKnown{}, Schedule: func(_ context.Context, given *nodewisev1.ScheduleRequest) (*nodewisev1.ScheduleResponse, error) {
				request = given
				return &nodewisev1.ScheduleResponse{}, nil
			}}
			err := all.Decide(t.Context())
			switch quotas := request.GetQuotas(); {
			case test.most == 0:
				if err == nil || request != nil {
					t.Error("the round did not fail: ", request)
				}
			case err != nil || request == nil:
				t.Error(err)
			case test.most < 0:
				if len(quotas) != 0 {
					t.Error(quotas)
				}
			case len(quotas) != 1 || quotas[0].GetMaxDevices() != test.most || quotas[0].GetQueue() != request.GetJobs()[0].GetQueue():
				t.Error(quotas, request.GetJobs())
			}
		})
	}
}
