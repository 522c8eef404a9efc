package extender

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	corev1 "k8s.io/api/core/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/nodewise/nodewise/integrations/kubernetes/internal/ask"
)

// One request with 100 nodes, without its connection.
func BenchmarkPrioritize(b *testing.B) {
	var kinds, names []string
	for number := range 100 {
		kinds, names = append(kinds, []string{"H100", "A100"}[number%2]), append(names, fmt.Sprintf("n%d", number))
	}
	known := curves{"a": {Points: map[string][]ask.Point{"H100": points(100, 180), "A100": points(60, 110)}}}
	handler := Handler(withNodes(kinds...), known)
	pod := podOn("j", "p", "", "a", 2)
	for number := range 40 {
		pod.Spec.Containers[0].Env = append(pod.Spec.Containers[0].Env, corev1.EnvVar{Name: fmt.Sprint("SETTING_", number), Value: "a value as long as they are"})
	}
	body, err := json.Marshal(&extenderv1.ExtenderArgs{Pod: pod, NodeNames: &names})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		reply := httptest.NewRecorder()
		handler.ServeHTTP(reply, httptest.NewRequest(http.MethodPost, "/prioritize", bytes.NewReader(body)))
		if reply.Code != http.StatusOK {
			b.Fatal(reply.Body)
		}
	}
}
