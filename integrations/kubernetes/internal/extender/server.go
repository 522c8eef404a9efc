// Package extender answers kube-scheduler's questions about a pod: which nodes it fits on, how good they are, and which pods to preempt. It
// answers from curves and from watched nodes and pods in memory, so that no answer waits for a call.
package extender

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

const mostBodyBytes = 64 << 20

var answered = prometheus.NewHistogramVec(prometheus.HistogramOpts{
	Name: "nodewise_kubernetes_extender_seconds", Help: "Seconds to answer kube-scheduler, by verb.", Buckets: prometheus.ExponentialBuckets(0.0001, 2, 14),
}, []string{"verb"})

func init() { metrics.Registry.MustRegister(answered) }

// Handler serves /filter, /prioritize and /preempt.
func Handler(cluster *Cluster, curves Curves) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST /filter", verb("filter", func(args *extenderv1.ExtenderArgs) (any, error) {
		names, err := namesOf(args)
		if err != nil {
			return nil, err
		}
		kept, failed := cluster.Filter(curves, args.Pod, names)
		result := &extenderv1.ExtenderFilterResult{FailedAndUnresolvableNodes: failed}
		if args.NodeNames != nil {
			result.NodeNames = &kept
		} else {
			result.Nodes = &corev1.NodeList{}
			for _, node := range args.Nodes.Items {
				if _, out := failed[node.Name]; !out {
					result.Nodes.Items = append(result.Nodes.Items, node)
				}
			}
		}
		return result, nil
	}))
	mux.Handle("POST /prioritize", verb("prioritize", func(args *extenderv1.ExtenderArgs) (any, error) {
		names, err := namesOf(args)
		if err != nil {
			return nil, err
		}
		return cluster.Prioritize(curves, args.Pod, names), nil
	}))
	mux.Handle("POST /preempt", verb("preempt", func(args *extenderv1.ExtenderPreemptionArgs) (any, error) {
		if args.Pod == nil {
			return nil, fmt.Errorf("the request has no Pod")
		}
		candidates := args.NodeNameToMetaVictims
		if candidates == nil {
			candidates = map[string]*extenderv1.MetaVictims{}
			for name, victims := range args.NodeNameToVictims {
				candidates[name] = &extenderv1.MetaVictims{NumPDBViolations: victims.NumPDBViolations}
				for _, pod := range victims.Pods {
					candidates[name].Pods = append(candidates[name].Pods, &extenderv1.MetaPod{UID: string(pod.UID)})
				}
			}
		}
		return &extenderv1.ExtenderPreemptionResult{NodeNameToMetaVictims: cluster.Preempt(curves, args.Pod, candidates)}, nil
	}))
	return mux
}

// verb answers one kind of request. kube-scheduler ignores an error if the extender is ignorable.
func verb[A any](name string, answer func(*A) (any, error)) http.Handler {
	took := answered.WithLabelValues(name)
	return http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		begun := time.Now()
		defer func() { took.Observe(time.Since(begun).Seconds()) }()
		args := new(A)
		if err := json.NewDecoder(http.MaxBytesReader(writer, request.Body, mostBodyBytes)).Decode(args); err != nil {
			http.Error(writer, "the body is not JSON of the scheduler extender API: "+err.Error(), http.StatusBadRequest)
			return
		}
		reply, err := answer(args)
		if err != nil {
			http.Error(writer, err.Error(), http.StatusBadRequest)
			return
		}
		writer.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(writer).Encode(reply)
	})
}

func namesOf(args *extenderv1.ExtenderArgs) ([]string, error) {
	switch {
	case args.Pod == nil:
		return nil, fmt.Errorf("the request has no Pod")
	case args.NodeNames != nil:
		return *args.NodeNames, nil
	case args.Nodes != nil:
		names := make([]string, len(args.Nodes.Items))
		for index := range args.Nodes.Items {
			names[index] = args.Nodes.Items[index].Name
		}
		return names, nil
	}
	return nil, fmt.Errorf("the request has neither NodeNames nor Nodes")
}
