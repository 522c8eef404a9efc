// Package load sends requests to an extender at a fixed rate, whether or not it keeps up, and measures the answers.
package load

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/nodewise/nodewise/integrations/kubernetes/internal/jobs"
)

// connections are more than kube-scheduler uses.
const connections = 8

// Settings state what to send.
type Settings struct {
	// URL of the extender, without a verb.
	URL string
	// Rate is the number of requests per second, alternating between filter and prioritize. Duration is for how long they are sent.
	Rate     float64
	Duration time.Duration
	// Profiles are the names of the jobs' profiles, used in turn.
	Profiles []string
	// Settings are the settings annotation of each pod.
	Settings string
	// Nodes are the names of the nodes in each request.
	Nodes []string
	// DevicesPerPod and NodesPerJob are the numbers that each pod states.
	DevicesPerPod, NodesPerJob int
	// TLS is the configuration of the connection.
	TLS *tls.Config
}

// Result is the measurement. Times count from when a request was due, so that they include waiting.
type Result struct {
	RequestsPerSecond float64 `json:"requests_per_second"`
	Requests          int     `json:"requests"`
	Failed            int64   `json:"failed"`
	Opinions          int64   `json:"opinions"` // prioritize answers that prefer some nodes
	NodesPerRequest   int     `json:"nodes_per_request"`
	RequestBytes      int     `json:"request_bytes"`
	P50Milliseconds   float64 `json:"p50_milliseconds"`
	P99Milliseconds   float64 `json:"p99_milliseconds"`
	P999Milliseconds  float64 `json:"p99_9_milliseconds"`
	MostMilliseconds  float64 `json:"most_milliseconds"`
}

// Run sends requests until the duration is over.
func Run(ctx context.Context, settings Settings) (Result, error) {
	if settings.Rate <= 0 || settings.Duration <= 0 || len(settings.Profiles) == 0 || len(settings.Nodes) == 0 {
		return Result{}, fmt.Errorf("give a rate and a duration above 0, at least one profile and at least one node")
	}
	var bodies [][]byte
	for number := range max(len(settings.Profiles), 64) {
		body, err := json.Marshal(&extenderv1.ExtenderArgs{Pod: pod(settings, number), NodeNames: &settings.Nodes})
		if err != nil {
			return Result{}, err
		}
		bodies = append(bodies, body)
	}
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: settings.TLS, MaxIdleConnsPerHost: connections, MaxConnsPerHost: connections}}
	count := int(settings.Rate * settings.Duration.Seconds())
	took := make([]time.Duration, count)
	result := Result{Requests: count, NodesPerRequest: len(settings.Nodes), RequestBytes: len(bodies[0])}
	var running sync.WaitGroup
	begun := time.Now()
	var failure atomic.Value
	for number := range count {
		due := begun.Add(time.Duration(float64(number) / settings.Rate * float64(time.Second)))
		if wait := time.Until(due); wait > 0 {
			select {
			case <-ctx.Done():
				return result, ctx.Err()
			case <-time.After(wait):
			}
		}
		running.Go(func() {
			verb := "/filter"
			if number%2 == 1 {
				verb = "/prioritize"
			}
			prefers, err := askOnce(ctx, client, settings.URL+verb, bodies[number/2%len(bodies)])
			took[number] = time.Since(due)
			if err != nil {
				atomic.AddInt64(&result.Failed, 1)
				failure.Store(err)
			} else if prefers {
				atomic.AddInt64(&result.Opinions, 1)
			}
		})
	}
	running.Wait()
	result.RequestsPerSecond = float64(count) / time.Since(begun).Seconds()
	slices.Sort(took)
	at := func(share float64) float64 {
		return float64(took[min(int(share*float64(count)), count-1)].Microseconds()) / 1000
	}
	result.P50Milliseconds, result.P99Milliseconds, result.P999Milliseconds, result.MostMilliseconds = at(0.5), at(0.99), at(0.999), at(1)
	if err, failed := failure.Load().(error); failed && result.Failed == int64(count) {
		return result, err
	}
	return result, nil
}

func askOnce(ctx context.Context, client *http.Client, url string, body []byte) (prefers bool, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	request.Header.Set("Content-Type", "application/json")
	reply, err := client.Do(request)
	if err != nil {
		return false, err
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err != nil {
		return false, err
	}
	if reply.StatusCode != http.StatusOK {
		return false, fmt.Errorf("%s: %s", reply.Status, text)
	}
	return bytes.Contains(text, []byte(`"Score":10`)), nil
}

// pod returns a pod of a typical size for training jobs.
func pod(settings Settings, number int) *corev1.Pod {
	name := fmt.Sprintf("train-%d", number)
	yes := true
	container := corev1.Container{
		Name: "trainer", Image: "training:latest", Command: []string{"torchrun"},
		Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{
			"nvidia.com/gpu": *resource.NewQuantity(int64(settings.DevicesPerPod), resource.DecimalSI), "memory": resource.MustParse("512Gi"), "cpu": resource.MustParse("64"),
		}},
	}
	for index := range 40 {
		container.Env = append(container.Env, corev1.EnvVar{Name: fmt.Sprintf("SETTING_%d", index), Value: "a value as long as they are"})
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name + "-0", Namespace: "default", UID: "load", Labels: map[string]string{"job-name": name},
			Annotations: map[string]string{
				jobs.Profile: settings.Profiles[number%len(settings.Profiles)], jobs.Chosen: fmt.Sprint(settings.NodesPerJob), jobs.Settings: settings.Settings,
			},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: name, UID: "load", Controller: &yes}},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{container}},
	}
}
