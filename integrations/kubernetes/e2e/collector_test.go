package e2e

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	nodewisev1 "github.com/nodewise/nodewise/clients/go/gen/nodewise/v1"

	"github.com/nodewise/nodewise/integrations/kubernetes/internal/testcluster"
)

// The collector reads logs through the API server from the kubelet's port, where this test answers: 4 steps per second. One observation per
// window arrives, although the collector is restarted within the window.
func TestWhatLogsSayIsObserved(t *testing.T) {
	addNodes(t, "logs", "V100", 2, "")
	serveLogs(t, func(container string) (string, int) {
		if !strings.HasPrefix(container, "logs-0-") {
			return "", 0
		}
		return "step %d", 4
	})
	store(t, "team/logs", measured(t, "V100"))
	made := job(t, "logs", "logs", map[string]string{
		"nodewise.dev/profile": "team/logs", "nodewise.dev/nodes": "2", "nodewise.dev/settings": `{"global_batch_samples": 512, "sync_mode": "SYNC_MODE_ALLREDUCE"}`,
		"nodewise.dev/steps-pattern": `step (?P<step>\d+)`,
	})
	placed(t, "logs", int(*made.Spec.Parallelism))
	for range 2 {
		if err := startProcess(t.Context(), "collector", "-window", "1s", "-warm-up", "1s"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { end(rig.processes["collector"]) })
		before := int32(0)
		err := testcluster.Until(t.Context(), func(ctx context.Context) (bool, error) {
			found := observations(ctx, t, "team/logs")
			if before == 0 {
				before = int32(len(found.GetStepsPerSecond()))
			}
			return int32(len(found.GetStepsPerSecond())) > before, nil
		})
		if err != nil {
			t.Fatal(err, rig.Log("collector"))
		}
		end(rig.processes["collector"])
	}
	found := observations(t.Context(), t, "team/logs")
	last, at := len(found.GetStepsPerSecond())-1, map[float64]bool{}
	for _, each := range found.GetMeasuredAtUnixSeconds()[3:] {
		if at[each] {
			t.Error("a window was observed twice: ", found.GetMeasuredAtUnixSeconds())
		}
		at[each] = true
	}
	ran := found.GetConfigurations()
	if rate := found.GetStepsPerSecond()[last]; rate < 3.9 || rate > 4.1 || ran.GetNodes()[last] != 2 || ran.GetWorkers()[last] != 16 || ran.GetGlobalBatchSamples()[0] != 512 || ran.GetDeviceNames()[0] != "V100" {
		t.Error(found)
	}
}

// serveLogs answers for the kubelets of all nodes until the test ends. The log of a container "POD/NAME" has lines of a format with the current step,
// which grows by so much in a second; 0 = there is no log.
func serveLogs(t *testing.T, of func(container string) (line string, perSecond int)) {
	t.Helper()
	kubelet := httptest.NewTLSServer(http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		line, perSecond := of(strings.TrimPrefix(request.URL.Path, "/containerLogs/default/"))
		if perSecond == 0 {
			http.NotFound(writer, request)
			return
		}
		now := time.Now().UTC()
		since, err := time.Parse(time.RFC3339, request.URL.Query().Get("sinceTime"))
		if err != nil {
			http.Error(writer, err.Error(), http.StatusBadRequest)
			return
		}
		for at := since; at.Before(now); at = at.Add(time.Second / time.Duration(perSecond)) {
			fmt.Fprintf(writer, "%s "+line+"\n", at.Format(time.RFC3339Nano), at.UnixMilli()*int64(perSecond)/1000)
		}
	}))
	t.Cleanup(kubelet.Close)
	_, port, err := net.SplitHostPort(kubelet.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	nodes := &corev1.NodeList{}
	if err := rig.kubernetes.List(t.Context(), nodes); err != nil {
		t.Fatal(err)
	}
	for index := range nodes.Items {
		node := &nodes.Items[index]
		node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}}
		node.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(number(t, port))
		if err := rig.kubernetes.Status().Update(t.Context(), node); err != nil {
			t.Fatal(err)
		}
	}
}

func observations(ctx context.Context, t *testing.T, name string) *nodewisev1.Observations {
	t.Helper()
	reply, err := rig.nodewise.GetProfile(ctx, &nodewisev1.GetProfileRequest{ProfileId: name})
	if err != nil {
		t.Fatal(err)
	}
	return reply.GetProfile().GetContent().GetObservations()
}
