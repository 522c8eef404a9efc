package nodewise

import (
	"cmp"
	"errors"
	"slices"

	nodewisev1 "github.com/nodewise/nodewise/clients/go/gen/nodewise/v1"
)

// NodeRange has one configuration for each number of nodes from first to last. Step, powers_of_two, workers_per_node, placement_rule and
// settings may be set in what it returns.
func NodeRange(first, last int32) *nodewisev1.ConfigurationRange {
	counts := &nodewisev1.CountRange{First: first, Last: last}
	return &nodewisev1.ConfigurationRange{Axis: &nodewisev1.ConfigurationRange_Nodes{Nodes: counts}}
}

// WorkerRange has one configuration for each number of workers from first to last; nodes follow from the placement rule.
func WorkerRange(first, last int32) *nodewisev1.ConfigurationRange {
	counts := &nodewisev1.CountRange{First: first, Last: last}
	return &nodewisev1.ConfigurationRange{Axis: &nodewisev1.ConfigurationRange_Workers{Workers: counts}}
}

// Rule is what "best" may mean.
type Rule interface {
	*nodewisev1.HighestThroughput | *nodewisev1.Knee | *nodewisev1.LeastTime | *nodewisev1.LeastCost | *nodewisev1.FewestDevices
}

// Objective asks for what a rule says. Set Confidence in what it returns to judge by a bound of the interval; absent = by the point.
// Set MaxExtrapolationRatio to let it recommend more than 4 times the measured scale; 0 = no limit.
func Objective[R Rule](rule R) *nodewisev1.Objective {
	switch rule := any(rule).(type) {
	case *nodewisev1.Knee:
		return &nodewisev1.Objective{Rule: &nodewisev1.Objective_Knee{Knee: rule}}
	case *nodewisev1.LeastTime:
		return &nodewisev1.Objective{Rule: &nodewisev1.Objective_LeastTime{LeastTime: rule}}
	case *nodewisev1.LeastCost:
		return &nodewisev1.Objective{Rule: &nodewisev1.Objective_LeastCost{LeastCost: rule}}
	case *nodewisev1.FewestDevices:
		return &nodewisev1.Objective{Rule: &nodewisev1.Objective_FewestDevices{FewestDevices: rule}}
	}
	return &nodewisev1.Objective{Rule: &nodewisev1.Objective_HighestThroughput{HighestThroughput: &nodewisev1.HighestThroughput{}}}
}

// StoredProfile is a profile that the server holds, by its name. Set MinimumRevision or Revision in what it returns to ask about one at least
// as new, or as it was.
func StoredProfile(profileID string) *nodewisev1.ProfileSource {
	return &nodewisev1.ProfileSource{Source: &nodewisev1.ProfileSource_ProfileId{ProfileId: profileID}}
}

// InlineProfile brings the profile along; nothing is stored.
func InlineProfile(content *nodewisev1.ProfileContent) *nodewisev1.ProfileSource {
	return &nodewisev1.ProfileSource{Source: &nodewisev1.ProfileSource_Content{Content: content}}
}

// NodePool is a pool of alike nodes with all their devices free.
func NodePool(name, deviceName string, nodes, devicesPerNode int32) *nodewisev1.NodePool {
	pool := &nodewisev1.NodePool{Name: name, DeviceName: deviceName}
	for range nodes {
		pool.AvailableDevices = append(pool.AvailableDevices, devicesPerNode)
	}
	return pool
}

// WorkerGroup is part of a configuration's workers that are alike.
type WorkerGroup struct {
	Workers int32
	// Device is their accelerator; empty = the row's. Either every group of some configurations names one, or none does.
	Device string
	// ComputeFactor is their compute time relative to what the evidence says of their device, above 1 = slower; 0 = 1.
	ComputeFactor float64
}

// Configuration is one candidate answer, as a row. What is zero is not stated: then what the job's evidence says holds, or the default that the
// column's comment in nodewisev1.Configurations gives.
type Configuration struct {
	// Nodes are the machines that run workers; Workers the training processes in total, one per device.
	Nodes, Workers int32
	// ParameterServers is nil where it is not stated; either every row states it, or none does.
	ParameterServers *int32
	// Device is the accelerator, e.g. "V100"; Offer the name of one of the question's offers.
	Device, Offer string
	// SyncMode is how gradients are exchanged.
	SyncMode nodewisev1.SyncMode
	// Placement has the workers on each node; empty = packed.
	Placement []int32
	// Groups are workers that are not alike; empty = all are alike.
	Groups []WorkerGroup
	// BatchPerWorkerSamples are samples per worker and micro-step; GlobalBatchSamples are samples per step over all workers.
	BatchPerWorkerSamples, GlobalBatchSamples float64
	// AccumulationSteps are the micro-steps whose gradients are added before an exchange.
	AccumulationSteps int32
	// LinkBytesPerSecond is the link of a node or a parameter server, bytes per second and direction.
	LinkBytesPerSecond float64
	// Degrees of parallelism, in devices, stages, replicas, devices, devices, and chunks per stage.
	TensorParallel, PipelineParallel, DataParallel, ExpertParallel, ContextParallel, Interleave int32
	// SequenceParallel says that layer norms and dropouts are split along the sequence.
	SequenceParallel bool
	// ZeroStage is the ZeRO stage, 0 to 3.
	ZeroStage int32
	// Recomputation is what is computed again in the backward pass.
	Recomputation nodewisev1.Recomputation
	// Precision is the number format of weights and activations, e.g. "fp16".
	Precision string
	// BackupWorkers are those of each synchronous step whose result is not waited for.
	BackupWorkers int32
	// HybridSyncFraction is the share of mini-batches that is run synchronously, 0 to 1; HybridSwitchSeconds is lost once at the switch.
	HybridSyncFraction, HybridSwitchSeconds float64
}

// Configurations makes columns of rows. It is an error where only some rows state their parameter servers, or only some groups their device.
func Configurations(rows ...Configuration) (*nodewisev1.Configurations, error) {
	found := &nodewisev1.Configurations{
		Nodes:                   column(rows, 0, func(r *Configuration) int32 { return r.Nodes }),
		Workers:                 column(rows, 0, func(r *Configuration) int32 { return r.Workers }),
		SyncModes:               column(rows, 0, func(r *Configuration) nodewisev1.SyncMode { return r.SyncMode }),
		BatchPerWorkerSamples:   column(rows, 0, func(r *Configuration) float64 { return r.BatchPerWorkerSamples }),
		GlobalBatchSamples:      column(rows, 0, func(r *Configuration) float64 { return r.GlobalBatchSamples }),
		AccumulationSteps:       column(rows, 1, func(r *Configuration) int32 { return r.AccumulationSteps }),
		LinkBytesPerSecond:      column(rows, 0, func(r *Configuration) float64 { return r.LinkBytesPerSecond }),
		TensorParallelDegrees:   column(rows, 1, func(r *Configuration) int32 { return r.TensorParallel }),
		PipelineParallelDegrees: column(rows, 1, func(r *Configuration) int32 { return r.PipelineParallel }),
		DataParallelDegrees:     column(rows, 0, func(r *Configuration) int32 { return r.DataParallel }),
		ExpertParallelDegrees:   column(rows, 1, func(r *Configuration) int32 { return r.ExpertParallel }),
		ContextParallelDegrees:  column(rows, 1, func(r *Configuration) int32 { return r.ContextParallel }),
		InterleaveDegrees:       column(rows, 1, func(r *Configuration) int32 { return r.Interleave }),
		SequenceParallel:        column(rows, false, func(r *Configuration) bool { return r.SequenceParallel }),
		ZeroStages:              column(rows, 0, func(r *Configuration) int32 { return r.ZeroStage }),
		Recomputations:          column(rows, 0, func(r *Configuration) nodewisev1.Recomputation { return r.Recomputation }),
		Precisions:              column(rows, "", func(r *Configuration) string { return r.Precision }),
		BackupWorkers:           column(rows, 0, func(r *Configuration) int32 { return r.BackupWorkers }),
		HybridSyncFractions:     column(rows, 0, func(r *Configuration) float64 { return r.HybridSyncFraction }),
		HybridSwitchSeconds:     column(rows, 0, func(r *Configuration) float64 { return r.HybridSwitchSeconds }),
	}
	found.OfferNames, found.OfferIndexes = dictionary(rows, nil, func(r *Configuration) string { return r.Offer })
	groups, ofGroups := 0, []string{}
	for i := range rows {
		row := &rows[i]
		if row.ParameterServers != nil {
			found.ParameterServers = append(found.ParameterServers, *row.ParameterServers)
		}
		for _, group := range row.Groups {
			groups++
			if group.Device != "" {
				ofGroups = append(ofGroups, group.Device)
			}
		}
	}
	if stated := len(found.ParameterServers); stated != 0 && stated != len(rows) {
		return nil, errors.New("nodewise: ParameterServers is nil in a row and given in another; give every row a value, or none")
	}
	if len(ofGroups) != 0 && len(ofGroups) != groups {
		return nil, errors.New("nodewise: Device is empty in a group and given in another; either every group names its device, or none does")
	}
	found.DeviceNames, found.DeviceIndexes = dictionary(rows, ofGroups, func(r *Configuration) string { return r.Device })
	addPlacements(found, rows)
	if groups != 0 {
		addGroups(found, rows)
	}
	return found, nil
}

// column has one entry for each row, `absent` where the row does not state it; none where no row does.
func column[T comparable](rows []Configuration, absent T, read func(*Configuration) T) []T {
	var zero T
	stated := false
	entries := make([]T, len(rows))
	for i := range rows {
		if entries[i] = read(&rows[i]); entries[i] == zero {
			entries[i] = absent
		} else {
			stated = true
		}
	}
	if !stated {
		return nil
	}
	return entries
}

// dictionary has the names of rows, then others, and each row's entry; one name for all rows needs no entries.
func dictionary(rows []Configuration, others []string, read func(*Configuration) string) (names []string, indexes []int32) {
	entry := func(name string) int32 {
		index := slices.Index(names, name)
		if index < 0 {
			names, index = append(names, name), len(names)
		}
		return int32(index)
	}
	if stated := column(rows, "", read); stated != nil {
		for _, name := range stated {
			indexes = append(indexes, entry(name))
		}
	}
	alike := len(names) == 1
	for _, name := range others {
		entry(name)
	}
	if alike && len(others) == 0 {
		indexes = nil
	}
	return names, indexes
}

func addPlacements(found *nodewisev1.Configurations, rows []Configuration) {
	if !slices.ContainsFunc(rows, func(r Configuration) bool { return len(r.Placement) > 0 }) {
		return
	}
	found.PlacementOffsets = []int32{0}
	for i := range rows {
		found.PlacementWorkers = append(found.PlacementWorkers, rows[i].Placement...)
		found.PlacementOffsets = append(found.PlacementOffsets, int32(len(found.PlacementWorkers)))
	}
}

func addGroups(found *nodewisev1.Configurations, rows []Configuration) {
	found.GroupOffsets = []int32{0}
	unlike := false
	for i := range rows {
		for _, group := range rows[i].Groups {
			found.GroupWorkers = append(found.GroupWorkers, group.Workers)
			if group.Device != "" {
				found.GroupDeviceIndexes = append(found.GroupDeviceIndexes, int32(slices.Index(found.DeviceNames, group.Device)))
			}
			factor := cmp.Or(group.ComputeFactor, 1)
			unlike = unlike || factor != 1
			found.GroupComputeFactors = append(found.GroupComputeFactors, factor)
		}
		found.GroupOffsets = append(found.GroupOffsets, int32(len(found.GroupWorkers)))
	}
	if !unlike {
		found.GroupComputeFactors = nil
	}
}
