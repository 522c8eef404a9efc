package nodewise_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	nodewise "github.com/nodewise/nodewise/clients/go"
	nodewisev1 "github.com/nodewise/nodewise/clients/go/gen/nodewise/v1"
)

func same(t *testing.T, found, empty proto.Message, want string) {
	t.Helper()
	if err := protojson.Unmarshal([]byte(want), empty); err != nil {
		t.Fatal(err)
	}
	if !proto.Equal(found, empty) {
		t.Errorf("%v, want %v", found, empty)
	}
}

func TestBuilders(t *testing.T) {
	same(t, nodewise.NodeRange(1, 16), &nodewisev1.ConfigurationRange{}, `{"nodes": {"first": 1, "last": 16}}`)
	same(t, nodewise.WorkerRange(2, 8), &nodewisev1.ConfigurationRange{}, `{"workers": {"first": 2, "last": 8}}`)
	same(t, nodewise.StoredProfile("a/b"), &nodewisev1.ProfileSource{}, `{"profile_id": "a/b"}`)
	same(t, nodewise.InlineProfile(&nodewisev1.ProfileContent{Workload: &nodewisev1.Workload{ModelName: "m"}}), &nodewisev1.ProfileSource{},
		`{"content": {"workload": {"model_name": "m"}}}`)
	same(t, nodewise.NodePool("p", "V100", 2, 4), &nodewisev1.NodePool{}, `{"name": "p", "device_name": "V100", "available_devices": [4, 4]}`)
	same(t, nodewise.Objective(&nodewisev1.HighestThroughput{}), &nodewisev1.Objective{}, `{"highest_throughput": {}}`)
	same(t, nodewise.Objective(&nodewisev1.Knee{Share: ptr(0.4)}), &nodewisev1.Objective{}, `{"knee": {"share": 0.4}}`)
	same(t, nodewise.Objective(&nodewisev1.LeastTime{}), &nodewisev1.Objective{}, `{"least_time": {}}`)
	same(t, nodewise.Objective(&nodewisev1.LeastCost{}), &nodewisev1.Objective{}, `{"least_cost": {}}`)
	same(t, nodewise.Objective(&nodewisev1.FewestDevices{DeadlineSeconds: 9}), &nodewisev1.Objective{}, `{"fewest_devices": {"deadline_seconds": 9}}`)
}

func TestConfigurationsAreColumns(t *testing.T) {
	for want, rows := range map[string][]nodewise.Configuration{
		`{}`:                     nil,
		`{"nodes": [1, 2]}`:      {{Nodes: 1}, {Nodes: 2}},
		`{"workers": [0, 2]}`:    {{}, {Workers: 2}},
		`{"zero_stages": [0,3]}`: {{}, {ZeroStage: 3}},
		`{"tensor_parallel_degrees": [1, 8], "pipeline_parallel_degrees": [4, 1], "sequence_parallel": [false, true]}`: {
			{PipelineParallel: 4}, {TensorParallel: 8, SequenceParallel: true},
		},
		`{"parameter_servers": [0, 2], "sync_modes": ["SYNC_MODE_ASYNC", "SYNC_MODE_UNSPECIFIED"]}`: {
			{ParameterServers: ptr(int32(0)), SyncMode: nodewisev1.SyncMode_SYNC_MODE_ASYNC}, {ParameterServers: ptr(int32(2))},
		},
		`{"device_names": ["V100"], "nodes": [1, 2]}`:                            {{Nodes: 1, Device: "V100"}, {Nodes: 2, Device: "V100"}},
		`{"device_names": ["V100", "", "A100"], "device_indexes": [0, 1, 2, 0]}`: {{Device: "V100"}, {}, {Device: "A100"}, {Device: "V100"}},
		`{"offer_names": ["", "spot"], "offer_indexes": [0, 1]}`:                 {{}, {Offer: "spot"}},
		`{"placement_offsets": [0, 2, 2], "placement_workers": [4, 4]}`:          {{Placement: []int32{4, 4}}, {}},
		`{"group_offsets": [0, 2], "group_workers": [3, 1], "group_compute_factors": [1, 2]}`: {
			{Groups: []nodewise.WorkerGroup{{Workers: 3}, {Workers: 1, ComputeFactor: 2}}},
		},
		`{"device_names": ["V100", "K80"], "group_offsets": [0, 2], "group_workers": [3, 1], "group_device_indexes": [0, 1]}`: {
			{Groups: []nodewise.WorkerGroup{{Workers: 3, Device: "V100"}, {Workers: 1, Device: "K80"}}},
		},
		`{"device_names": ["P100", "K80"], "device_indexes": [0, 0], "group_offsets": [0, 0, 1], "group_workers": [1], "group_device_indexes": [1]}`: {
			{Device: "P100"}, {Device: "P100", Groups: []nodewise.WorkerGroup{{Workers: 1, Device: "K80"}}},
		},
		`{"batch_per_worker_samples": [32], "global_batch_samples": [64], "accumulation_steps": [2], "link_bytes_per_second": [1e9],
		  "data_parallel_degrees": [2], "expert_parallel_degrees": [3], "context_parallel_degrees": [4], "interleave_degrees": [5],
		  "recomputations": ["RECOMPUTATION_FULL"], "precisions": ["bf16"], "backup_workers": [1], "hybrid_sync_fractions": [0.5], "hybrid_switch_seconds": [7]}`: {{
			BatchPerWorkerSamples: 32, GlobalBatchSamples: 64, AccumulationSteps: 2, LinkBytesPerSecond: 1e9, DataParallel: 2, ExpertParallel: 3,
			ContextParallel: 4, Interleave: 5, Recomputation: nodewisev1.Recomputation_RECOMPUTATION_FULL, Precision: "bf16", BackupWorkers: 1,
			HybridSyncFraction: 0.5, HybridSwitchSeconds: 7,
		}},
	} {
		found, err := nodewise.Configurations(rows...)
		if err != nil {
			t.Fatal(err)
		}
		same(t, found, &nodewisev1.Configurations{}, want)
	}
}

func TestConfigurationsThatCannotBeColumns(t *testing.T) {
	for want, rows := range map[string][]nodewise.Configuration{
		"ParameterServers is nil in a row": {{ParameterServers: ptr(int32(1))}, {}},
		"Device is empty in a group":       {{Groups: []nodewise.WorkerGroup{{Workers: 1, Device: "V100"}, {Workers: 1}}}},
	} {
		if _, err := nodewise.Configurations(rows...); err == nil || !strings.Contains(err.Error(), want) {
			t.Error(err)
		}
	}
}

// Every column of the contract has its place in a row.
func TestEveryColumnCanBeStated(t *testing.T) {
	full, err := nodewise.Configurations(nodewise.Configuration{
		Nodes: 1, Workers: 2, ParameterServers: ptr(int32(1)), Device: "V100", Offer: "o", SyncMode: 1, Placement: []int32{2},
		Groups: []nodewise.WorkerGroup{{Workers: 2, Device: "K80", ComputeFactor: 2}}, BatchPerWorkerSamples: 1, GlobalBatchSamples: 2, AccumulationSteps: 2,
		LinkBytesPerSecond: 1, TensorParallel: 2, PipelineParallel: 2, DataParallel: 2, ExpertParallel: 2, ContextParallel: 2, Interleave: 2,
		SequenceParallel: true, ZeroStage: 1, Recomputation: 1, Precision: "fp16", BackupWorkers: 1, HybridSyncFraction: 0.5, HybridSwitchSeconds: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	message := full.ProtoReflect()
	for i := range message.Descriptor().Fields().Len() {
		field := message.Descriptor().Fields().Get(i)
		if !message.Has(field) && field.Name() != "offer_indexes" { // one name for all rows needs none
			t.Error(field.Name())
		}
	}
}
