package jobs

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
)

// longNumbers are numbers that ParseQuantity would compute with for seconds to minutes.
var longNumbers = []string{
	"1e-20000000", "1e20000000", "1E-99999", "-1e+99999", "0.1e-2000000000", strings.Repeat("9", 65), "0." + strings.Repeat("0", 100_000) + "1", strings.Repeat("1", 1_000_000) + "Gi",
	"1e" + strings.Repeat("0", 100_000) + "1", "1e-9999999999999999999999",
}

// The webhook gets objects before anything has validated them, so it must not parse long numbers.
func TestLongNumbersAreRefusedBeforeTheyAreParsed(t *testing.T) {
	var parsed []string
	parseQuantity = func(text string) (resource.Quantity, error) {
		parsed = append(parsed, text)
		return resource.ParseQuantity(text)
	}
	t.Cleanup(func() { parseQuantity = resource.ParseQuantity })
	for _, number := range longNumbers {
		limits := fmt.Sprintf(`{resources: {limits: {nvidia.com/gpu: %q, memory: %q}, requests: {nvidia.com/gpu: %q}}}`, number, number, number)
		pod := `{spec: {containers: [` + limits + `], volumes: [{name: a, emptyDir: {sizeLimit: "` + number + `"}}]}}`
		for _, text := range []string{
			`{apiVersion: batch/v1, kind: Job, spec: {parallelism: 2, template: ` + pod + `}}`,
			`{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, spec: {replicatedJobs: [{name: a, template: {spec: {parallelism: 2, template: ` + pod + `}}}]}}`,
			`{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, spec: {trainer: {numNodes: 2, resourcesPerNode: {limits: {nvidia.com/gpu: "` + number + `"}}}}}`,
			`{apiVersion: ray.io/v1, kind: RayCluster, spec: {workerGroupSpecs: [{groupName: a, replicas: 2, template: ` + pod + `}]}}`,
			`{apiVersion: kubeflow.org/v1, kind: PyTorchJob, spec: {runPolicy: {schedulingPolicy: {minResources: {nvidia.com/gpu: "` + number + `"}}}, pytorchReplicaSpecs: {Worker: {replicas: 2, template: ` + pod + `}}}}`,
		} {
			job, err := Of(read(t, text))
			if err != nil {
				t.Fatal(text, err)
			}
			if devices, device, wrong := job.DevicesPerNode(), job.Device(), job.SetNodes(4); devices != 0 || device != "" || wrong != nil {
				t.Error(number[:10], devices, device, wrong)
			}
		}
	}
	if len(parsed) > 0 {
		t.Error("parsed:", len(parsed), "numbers")
	}
}

func TestQuantitiesThatKubernetesHoldsAreRead(t *testing.T) {
	for text, expected := range map[any]int64{
		"8": 8, int64(8): 8, 8.0: 8, "8e0": 8, "1k": 1000, "1Ki": 1024, "1e3": 1000, "1E": 1e18, "7Ei": 7 << 60, "0.5": 1, "1e-9": 1,
		"9223372036854775807": math.MaxInt64, "100e-003": 1,
	} {
		if found, err := quantity(text); err != nil || found.Value() != expected {
			t.Error(text, found.Value(), err)
		}
	}
	for _, text := range []any{nil, true, []any{}, map[string]any{}, "", "many"} {
		if _, err := quantity(text); err == nil {
			t.Error(text)
		}
	}
}
