package e2e

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodewise/nodewise/integrations/kubernetes/internal/testcluster"
)

const (
	settingsOfChecked = `{"global_batch_samples": 512}`
	settingsOfLarge   = `{"device_name": "A100-40GB", "batch_per_worker_samples": 1, "zero_stage": 3, "recomputation": "RECOMPUTATION_FULL"}`
)

// without stops one of this module's processes for a test.
func without(t *testing.T, name string) {
	t.Helper()
	end(rig.processes[name])
	t.Cleanup(func() {
		if err := startProcess(context.WithoutCancel(t.Context()), name); err != nil {
			t.Error(err)
		}
	})
}

// runProcess runs one of this module's processes for a test.
func runProcess(t *testing.T, name string, options ...string) {
	t.Helper()
	if err := startProcess(t.Context(), name, options...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { end(rig.processes[name]) })
}

// Kueue admits, holds or rejects jobs by what Nodewise says of them and what their owners ask for. However Nodewise fails, it admits them.
func TestAdmissionCheck(t *testing.T) {
	addNodes(t, "checked", "V100", 60, "")
	startControllers(t)
	without(t, "webhook") // it would change the numbers that are to be checked
	torchRuntime(t, "torch-tried", `{name: node, image: pytorch}`)
	create(t, read(t, `{apiVersion: kueue.x-k8s.io/v1beta2, kind: AdmissionCheck, metadata: {name: nodewise}, spec: {controllerName: nodewise.dev/admission-check}}`))
	queue(t, "checked", `admissionChecksStrategy: {admissionChecks: [{name: nodewise}]},`)
	store(t, "team/checked", measured(t, "V100"))
	store(t, "team/checked-large", transformer(96, 12288)) // 175 billion parameters
	asks := func(more map[string]string) map[string]string {
		all := map[string]string{"nodewise.dev/profile": "team/checked", "nodewise.dev/settings": settingsOfChecked}
		maps.Copy(all, more)
		return all
	}
	large := map[string]string{"nodewise.dev/profile": "team/checked-large", "nodewise.dev/settings": settingsOfLarge, "nodewise.dev/device": "A100-40GB"}
	tight := map[string]string{"nodewise.dev/samples": "1e9", "nodewise.dev/deadline-seconds": "10"}

	t.Run("answers", func(t *testing.T) {
		runProcess(t, "check")
		var all sync.WaitGroup
		for name, test := range map[string]struct {
			nodes       int
			annotations map[string]string
			check       string // annotation
			says        string
			fails       string // the state in which the check fails; empty = the job is admitted
		}{
			"worth":      {2, asks(map[string]string{"nodewise.dev/nodes": "1-8"}), "", "is worth its nodes", ""},
			"not-worth":  {4, asks(map[string]string{"nodewise.dev/nodes": "1-8", "nodewise.dev/share": "0.9"}), "reject", "is not worth its nodes; the recommendation is 1 node", "Rejected"},
			"advised":    {4, asks(map[string]string{"nodewise.dev/nodes": "1-8", "nodewise.dev/share": "0.9"}), "", "The job is admitted; annotation nodewise.dev/check: retry or reject would stop it", ""},
			"waits":      {4, asks(map[string]string{"nodewise.dev/nodes": "1-8", "nodewise.dev/share": "0.9"}), "retry", "is not worth its nodes", "Retry"},
			"in-time":    {2, asks(map[string]string{"nodewise.dev/samples": "1e6", "nodewise.dev/deadline-seconds": "1e6"}), "reject", "is done by its deadline (it takes", ""},
			"late":       {2, asks(tight), "reject", "is not done by its deadline: it takes", "Rejected"},
			"too-large":  {1, large, "reject", "does not fit into memory:", "Rejected"},
			"silent":     {1, map[string]string{}, "reject", "not checked: the job has no annotation nodewise.dev/profile", ""},
			"no-profile": {1, map[string]string{"nodewise.dev/profile": "team/none"}, "reject", "not checked: ", ""},
			"wrong":      {1, asks(tight), "never", "not checked: annotation nodewise.dev/check is \"never\"", ""},
		} {
			annotations := maps.Clone(test.annotations)
			if test.check != "" {
				annotations["nodewise.dev/check"] = test.check
			}
			job := controlledKinds[0].in(t, "checked", "checked-"+name, annotations)
			setNodes(t, job, test.nodes)
			create(t, job)
			all.Go(func() {
				if test.fails != "" {
					stopped(t, job, test.fails, test.says)
					return
				}
				state, message := answered(t, job, test.says)
				t.Log(name, ": ", state, ": ", message)
				controlledKinds[0].running(t, job, test.nodes)
				if state != "Ready" {
					t.Error(name, " is ", state)
				}
			})
		}
		all.Wait()
	})

	t.Run("kinds", func(t *testing.T) {
		runProcess(t, "check")
		var all sync.WaitGroup
		for _, kind := range controlledKinds {
			passes := create(t, kind.in(t, "checked", kind.name+"-passes", asks(map[string]string{"nodewise.dev/nodes": "1-8", "nodewise.dev/check": "reject"})))
			late := create(t, kind.in(t, "checked", kind.name+"-late", asks(map[string]string{"nodewise.dev/samples": "1e9", "nodewise.dev/deadline-seconds": "10", "nodewise.dev/check": "reject"})))
			all.Go(func() {
				answered(t, passes, fmt.Sprintf("%d node", kind.nodes))
				kind.running(t, passes, kind.nodes)
				stopped(t, late, "Rejected", "is not done by its deadline")
			})
		}
		all.Wait()
	})

	for name, server := range wrongServers(t) {
		t.Run(name, func(t *testing.T) {
			runProcess(t, "check", "-server", server)
			job := create(t, controlledKinds[0].in(t, "checked", "checked-"+name, asks(map[string]string{"nodewise.dev/samples": "1e9", "nodewise.dev/deadline-seconds": "10", "nodewise.dev/check": "reject"})))
			_, message := answered(t, job, "not checked: ")
			t.Log(message)
			controlledKinds[0].running(t, job, 1)
		})
	}

	t.Run("no process", func(t *testing.T) {
		job := create(t, controlledKinds[0].in(t, "checked", "checked-later", asks(nil)))
		answered(t, job, "") // Kueue has reserved quota, and waits
		runProcess(t, "check")
		answered(t, job, "1 node: ")
		controlledKinds[0].running(t, job, 1)
	})
}

// torchRuntime creates a runtime of Kubeflow Trainer with one node.
func torchRuntime(t *testing.T, name, container string) {
	t.Helper()
	create(t, read(t, `{apiVersion: trainer.kubeflow.org/v1alpha1, kind: ClusterTrainingRuntime, metadata: {name: `+name+`, labels: {trainer.kubeflow.org/framework: torch}},
		spec: {mlPolicy: {numNodes: 1, torch: {}}, template: {spec: {replicatedJobs: [{name: node, template: {metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}},
			spec: {template: {spec: {serviceAccountName: default, containers: [`+container+`]}}}}}]}}}}`)) // admission, not started here, would name the account
}

// setNodes writes the number of nodes of a Job.
func setNodes(t *testing.T, job *unstructured.Unstructured, nodes int) {
	t.Helper()
	for _, field := range []string{"parallelism", "completions"} {
		if err := unstructured.SetNestedField(job.Object, int64(nodes), "spec", field); err != nil {
			t.Fatal(err)
		}
	}
}

// answered waits until the check of a job's workload has a message with a text, and returns its state and message.
func answered(t *testing.T, job *unstructured.Unstructured, says string) (state, message string) {
	t.Helper()
	err := testcluster.Until(t.Context(), func(ctx context.Context) (bool, error) {
		states, _, _ := unstructured.NestedSlice(workloadOf(ctx, t, job).Object, "status", "admissionChecks")
		if len(states) == 0 {
			return false, fmt.Errorf("it has no check")
		}
		found := states[0].(map[string]any)
		state, message = fmt.Sprint(found["state"]), fmt.Sprint(found["message"])
		return strings.Contains(message, says), nil
	})
	if err != nil {
		t.Errorf("%s: %v: %s: %s, not %q\n%s", job.GetName(), err, state, message, says, lastLines(rig.Log("check"), 10))
	}
	return state, message
}

// stopped waits until Kueue has evicted a job because its check was answered with a state and a message.
func stopped(t *testing.T, job *unstructured.Unstructured, state, says string) {
	t.Helper()
	if event := eventOf(t, job, "CheckFailed"); !strings.Contains(event.Message, says) {
		t.Error(job.GetName(), ": ", event.Message)
	} else {
		t.Log(job.GetName(), ": ", state, ": ", event.Message)
	}
	workload := &unstructured.Unstructured{}
	err := testcluster.Until(t.Context(), func(ctx context.Context) (bool, error) {
		workload = workloadOf(ctx, t, job)
		if state == "Retry" { // it may have quota again
			states, _, _ := unstructured.NestedSlice(workload.Object, "status", "admissionChecks")
			return len(states) == 1 && states[0].(map[string]any)["retryCount"] != nil, nil
		}
		active, stated, _ := unstructured.NestedBool(workload.Object, "spec", "active")
		return stated && !active && conditionIs(workload, "QuotaReserved", "False"), nil
	})
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(job.GroupVersionKind())
	if err := rig.kubernetes.Get(t.Context(), client.ObjectKeyFromObject(job), found); err != nil {
		t.Error(err)
	}
	suspend := cmp.Or(map[string]string{"PyTorchJob": "spec.runPolicy.suspend"}[job.GetKind()], "spec.suspend")
	if err != nil || conditionIs(workload, "Admitted", "True") || at(found.Object, suspend) != true {
		t.Error(job.GetName(), ": ", err, workload.Object["status"], at(found.Object, suspend))
	}
}
