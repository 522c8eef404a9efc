package collector

import (
	"context"
	"encoding/pem"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	prometheusv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	nodewisev1 "github.com/nodewise/nodewise/clients/go/gen/nodewise/v1"
)

// windows is a collector on a cluster that a test changes between windows of one minute. The first one ends at begin.
type windows struct {
	*testing.T
	collector *Collector
	cluster   client.Client
	end       time.Time
	sent      []*nodewisev1.AppendProfileRequest
}

func newWindows(t *testing.T, objects ...string) *windows {
	t.Helper()
	w := &windows{T: t, end: begin, cluster: fake.NewClientBuilder().Build()}
	w.collector = &Collector{Cluster: w.cluster, Window: time.Minute, WarmUp: time.Minute, Append: func(_ context.Context, request *nodewisev1.AppendProfileRequest) error {
		w.sent = append(w.sent, request)
		return nil
	}}
	w.write(`{apiVersion: v1, kind: Node, metadata: {name: node, labels: {nvidia.com/gpu.product: A100}}}`)
	for _, each := range objects {
		w.write(each)
	}
	return w
}

// write creates an object, or replaces it.
func (w *windows) write(text string) {
	w.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		w.Fatal(err)
	}
	if object.GetKind() != "Node" {
		object.SetNamespace("default")
	}
	before := object.DeepCopy()
	err := w.cluster.Get(w.Context(), client.ObjectKeyFromObject(object), before)
	if err == nil {
		object.SetResourceVersion(before.GetResourceVersion())
		status := object.DeepCopy()
		if err = w.cluster.Update(w.Context(), object); err == nil && object.GetKind() == "Pod" {
			status.SetResourceVersion(object.GetResourceVersion())
			err = w.cluster.Status().Update(w.Context(), status)
		}
	} else {
		err = w.cluster.Create(w.Context(), object)
	}
	if err != nil {
		w.Fatal(err)
	}
}

func (w *windows) remove(kind, version, name string) {
	w.Helper()
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(version)
	object.SetKind(kind)
	object.SetName(name)
	object.SetNamespace("default")
	if err := w.cluster.Delete(w.Context(), object); err != nil {
		w.Fatal(err)
	}
}

// collect reads the next window, and returns the steps per second of its observations.
func (w *windows) collect() []float64 {
	w.Helper()
	before := len(w.sent)
	if err := w.collector.Collect(w.Context(), w.end); err != nil {
		w.Fatal(err)
	}
	w.end = w.end.Add(time.Minute)
	var found []float64
	for _, each := range w.sent[before:] {
		found = append(found, each.GetContent().GetObservations().GetStepsPerSecond()...)
	}
	return found
}

// expect reads the next window and compares.
func (w *windows) expect(why string, expected ...float64) {
	w.Helper()
	found := w.collect()
	for index := range min(len(found), len(expected)) {
		found[index] = math.Round(found[index]*1e9) / 1e9
	}
	if fmt.Sprint(found) != fmt.Sprint(expected) {
		w.Errorf("%s: the window that ends at %s has %v, not %v", why, w.end.Add(-time.Minute).Format(time.TimeOnly), found, expected)
	}
}

// pod returns a pod with 8 devices, of an owner "VERSION KIND NAME".
func pod(name, owner, annotations, status string) string {
	var version, kind, of string
	_, _ = fmt.Sscan(owner, &version, &kind, &of)
	owners := ""
	if owner != "" {
		owners = fmt.Sprintf("ownerReferences: [{apiVersion: %s, kind: %s, name: %s, uid: %s, controller: true}]", version, kind, of, of)
	}
	if status == "" {
		status = "phase: Running"
	}
	return fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: %s, uid: %s, annotations: {%s}, %s},
		spec: {nodeName: node, containers: [{name: trainer, image: training, resources: {limits: {nvidia.com/gpu: 8}}}]}, status: {podIP: 127.0.0.1, %s}}`,
		name, name, annotations, owners, status)
}

func owner(version, kind, name, of, annotations, status string) string {
	owners := ""
	if of != "" {
		var itsVersion, itsKind, itsName string
		_, _ = fmt.Sscan(of, &itsVersion, &itsKind, &itsName)
		owners = fmt.Sprintf(", ownerReferences: [{apiVersion: %s, kind: %s, name: %s, uid: %s, controller: true}]", itsVersion, itsKind, itsName, itsName)
	}
	return fmt.Sprintf(`{apiVersion: %s, kind: %s, metadata: {name: %s, uid: %s, annotations: {%s}%s}, status: {%s}}`, version, kind, name, name, annotations, owners, status)
}

const profiled = `nodewise.dev/profile: team/job, nodewise.dev/settings: '{"global_batch_samples": 512}'`

// trained returns a TrainJob's status, reported some seconds after begin.
func trained(annotations string, seconds int, status string) string {
	return owner("trainer.kubeflow.org/v1alpha1", "TrainJob", "train", "", annotations,
		fmt.Sprintf("trainerStatus: {lastUpdatedTime: %q, %s}", begin.Add(time.Duration(seconds)*time.Second).Format(time.RFC3339), status))
}

func trainJob(t *testing.T) *windows {
	t.Helper()
	return newWindows(t,
		owner("jobset.x-k8s.io/v1alpha2", "JobSet", "set", "trainer.kubeflow.org/v1alpha1 TrainJob train", "", "restarts: 0"),
		owner("batch/v1", "Job", "part", "jobset.x-k8s.io/v1alpha2 JobSet set", "", ""),
		owner("batch/v1", "Job", "other-part", "jobset.x-k8s.io/v1alpha2 JobSet set", "", ""),
		pod("first", "batch/v1 Job part", "", ""), pod("second", "batch/v1 Job other-part", "", ""),
	)
}

func TestStepsInTheStatusOfATrainJob(t *testing.T) {
	w := trainJob(t)
	steps := func(at, step int, more string) {
		w.write(trained(profiled, at, fmt.Sprintf(`metrics: [{name: loss, value: "0.1"}, {name: current_step, value: "%d"}%s]`, step, more)))
	}
	steps(0, 1, "")
	w.expect("it just started")
	steps(50, 40, "")
	w.expect("warm-up")
	steps(70, 100, "")
	w.expect("the first reading after the warm-up")
	steps(170, 300, "")
	w.expect("200 steps in 100 s", 2)
	w.expect("nothing new was reported")
	steps(290, 310, "")
	w.expect("10 steps are too few")
	steps(350, 480, "")
	w.expect("180 steps in 180 s", 1)
	steps(410, 540, `, {name: eval_loss, value: "0.2"}`)
	w.expect("an evaluation")
	steps(470, 720, `, {name: eval_loss, value: "0.2"}`)
	w.expect("180 steps in 60 s", 3)
	steps(530, 720, `, {name: eval_loss, value: "0.2"}`)
	w.expect("no step")
	steps(590, 600, `, {name: eval_loss, value: "0.2"}`)
	w.expect("the count went back: another start")
	steps(650, 720, `, {name: eval_loss, value: "0.2"}`)
	w.expect("120 steps in 60 s", 2)
	last := w.sent[len(w.sent)-1]
	ran := last.GetContent().GetObservations().GetConfigurations()
	if last.ProfileId != "team/job" || ran.GetNodes()[0] != 2 || ran.GetWorkers()[0] != 16 || ran.GetDeviceNames()[0] != "A100" || ran.GetGlobalBatchSamples()[0] != 512 {
		t.Error(last)
	}
	if at := last.GetContent().GetObservations(); at.GetMeasuredAtUnixSeconds()[0] != float64(begin.Unix()+650) || at.GetStepsCounts()[0] != 120 {
		t.Error(at)
	}
	w.write(owner("jobset.x-k8s.io/v1alpha2", "JobSet", "set", "trainer.kubeflow.org/v1alpha1 TrainJob train", "", "restarts: 1"))
	steps(710, 900, "")
	w.expect("a restart in place")
	steps(770, 1080, "")
	w.expect("warm-up again")
	steps(830, 1260, "")
	w.expect("the first reading again")
	steps(890, 1440, "")
	w.expect("180 steps in 60 s", 3)
}

func TestProgressOfATrainJob(t *testing.T) {
	w := trainJob(t)
	progress := func(at, percent int) {
		w.write(trained(profiled+`, nodewise.dev/samples: "512000"`, at, fmt.Sprintf("progressPercentage: %d", percent)))
	}
	for index, each := range []struct {
		percent  int
		expected []float64
	}{{0, nil}, {5, nil}, {10, nil}, {20, nil}, {24, nil}, {29, []float64{240. / 240}}, {29, nil}, {49, []float64{200. / 120}}} { // of 1,000 steps
		progress(60*index, each.percent)
		for number := range each.expected {
			each.expected[number] = math.Round(each.expected[number]*1e9) / 1e9
		}
		w.expect(fmt.Sprint(each.percent, " %"), each.expected...)
	}
}

func TestAMetricThatTheJobNames(t *testing.T) {
	w := trainJob(t)
	for index := range 4 {
		w.write(trained(profiled+`, nodewise.dev/metrics: status, nodewise.dev/steps-pattern: '^seconds (?P<step_seconds>\S+)'`, 60*index, `metrics: [{name: seconds, value: "0.25"}]`))
		w.expect("4 steps/s after a window and the warm-up", [][]float64{nil, nil, {4}, {4}}[index]...)
	}
}

func TestMetricsOverHTTP(t *testing.T) {
	text := ""
	serving := httptest.NewServer(http.HandlerFunc(func(writer http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(writer, text) }))
	t.Cleanup(serving.Close)
	_, port, err := net.SplitHostPort(serving.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	annotations := profiled + `, nodewise.dev/metrics: ":` + port + `/metrics", nodewise.dev/steps-pattern: '^steps_total (?P<step>\S+)', nodewise.dev/evaluation-pattern: ^evaluations_total`
	w := newWindows(t, pod("first", "", annotations, ""))
	for _, each := range []struct {
		steps, evaluations int
		expected           []float64
	}{{0, 0, nil}, {60, 0, nil}, {180, 0, []float64{2}}, {240, 1, nil}, {360, 1, []float64{2}}, {360, 1, nil}, {420, 1, []float64{1}}, {30, 0, nil}} {
		text = fmt.Sprintf("steps_total %d\nevaluations_total %d\n", each.steps, each.evaluations)
		w.expect(text, each.expected...)
	}
	for _, elsewhere := range []string{"@127.0.0.1:" + port + "/metrics", ":" + port + ".example.com/", "", "//127.0.0.1"} {
		of := &job{pods: []*corev1.Pod{{}}, annotations: map[string]string{"nodewise.dev/steps-pattern": `(?P<step>\d+)`, "nodewise.dev/metrics": elsewhere}}
		if _, err := w.collector.present(t.Context(), of, w.end); err == nil || !strings.Contains(err.Error(), ":PORT/PATH") {
			t.Error(elsewhere, err)
		}
	}
	w.write(pod("first", "", annotations, "phase: Running, containerStatuses: [{name: trainer, restartCount: 1}]"))
	text = "steps_total 90\n"
	w.expect("the container restarted")
}

// A RayJob trains only while Ray says so.
func TestRayJob(t *testing.T) {
	querier := &answers{value: model.Vector{{Value: 2}}}
	ray := func(status string) string {
		return owner("ray.io/v1", "RayJob", "ray", "", profiled+", nodewise.dev/metrics-query: 'rate(steps_total[$window])'", status)
	}
	w := newWindows(t, owner("ray.io/v1", "RayCluster", "cluster", "ray.io/v1 RayJob ray", "", ""), pod("worker", "ray.io/v1 RayCluster cluster", "", ""),
		ray("jobDeploymentStatus: Running"))
	w.collector.Prometheus = querier
	for range 4 {
		w.expect("Ray has not started the training")
	}
	running := fmt.Sprintf("jobId: a, jobStatus: RUNNING, rayJobInfo: {startTime: %q}", begin.Add(220*time.Second).Format(time.RFC3339))
	w.write(ray(running))
	w.expect("Ray has started it")
	w.expect("warm-up")
	w.expect("it runs", 2)
	w.write(ray(strings.Replace(running, "jobId: a", "jobId: b, failed: 1", 1)))
	w.expect("it was tried again")
	w.expect("warm-up")
	w.expect("it runs again", 2)
	w.write(ray("jobId: b, jobStatus: SUCCEEDED"))
	w.expect("it has ended, and its pods stay")
}

// The log of a RayJob is that of the pod that prints what its driver does, in each way to submit it. Else it is the first worker's.
func TestLogOfARayJob(t *testing.T) {
	end := begin
	speeds := map[string]int{"/submitter/driver": 2, "/again/driver": 6, "/head/ray-job-submitter": 3, "/worker/trainer": 4, "/worker/": 5} // steps per second
	api := http.NewServeMux()
	api.HandleFunc("GET /api/v1/namespaces/default/pods/{pod}/log", func(writer http.ResponseWriter, request *http.Request) {
		speed := speeds["/"+request.PathValue("pod")+"/"+request.URL.Query().Get("container")]
		for second := range 60 {
			fmt.Fprintf(writer, "%s step %d\n", end.Add(time.Duration(second-60)*time.Second).Format(time.RFC3339Nano), 1000+speed*second)
		}
	})
	serving := httptest.NewServer(api)
	t.Cleanup(serving.Close)
	const submitter, foreign = "batch/v1 Job submitted", "batch/v1 Job foreign"
	for name, test := range map[string]struct {
		spec, annotations string
		more              []string
		expected          float64
	}{
		"by default":      {"", "", []string{driver("submitter", submitter, "Running")}, 2},
		"by a job":        {"submissionMode: K8sJobMode", "", []string{driver("submitter", submitter, "Running")}, 2},
		"pending":         {"", "", []string{driver("submitter", submitter, "Pending")}, 5},
		"another's":       {"", "", []string{driver("submitter", foreign, "Running")}, 5},
		"a container":     {"", ", nodewise.dev/container: driver", []string{driver("submitter", submitter, "Running")}, 2},
		"worker's":        {"", ", nodewise.dev/container: trainer", []string{driver("submitter", submitter, "Running")}, 4},
		"sidecar":         {"submissionMode: SidecarMode", "", []string{driver("head", "ray.io/v1 RayCluster cluster", "Running")}, 3},
		"by HTTP":         {"submissionMode: HTTPMode", "", []string{driver("submitter", submitter, "Running")}, 5},
		"by another user": {"submissionMode: InteractiveMode", "", nil, 5},
	} {
		t.Run(name, func(t *testing.T) {
			ray := owner("ray.io/v1", "RayJob", "ray", "", profiled+`, nodewise.dev/steps-pattern: 'step (?P<step>\d+)'`+test.annotations,
				fmt.Sprintf("rayClusterName: cluster, jobId: a, jobStatus: RUNNING, rayJobInfo: {startTime: %q}", begin.Add(-time.Minute).Format(time.RFC3339)))
			w := newWindows(t, append(test.more, strings.Replace(ray, "status:", "spec: {"+test.spec+"}, status:", 1), pod("worker", "ray.io/v1 RayCluster cluster", "", ""),
				owner("ray.io/v1", "RayCluster", "cluster", "ray.io/v1 RayJob ray", "", ""), owner("batch/v1", "Job", "submitted", "ray.io/v1 RayJob ray", "", ""),
				owner("batch/v1", "Job", "foreign", "", "", ""))...)
			var err error
			if w.collector.Logs, err = kubernetes.NewForConfig(&rest.Config{Host: serving.URL}); err != nil {
				t.Fatal(err)
			}
			for _, expected := range [][]float64{nil, nil, {test.expected}} { // the first window, the warm-up
				end = w.end
				w.expect(name, expected...)
			}
			if test.expected != 2 {
				return
			}
			w.remove("Pod", "v1", "submitter")
			w.write(driver("again", submitter, "Running"))
			for _, expected := range [][]float64{nil, nil, {6}} {
				end = w.end
				w.expect("another submitter prints the log from its beginning", expected...)
			}
		})
	}
}

// driver is a pod without devices that submits the RayJob "ray".
func driver(name, of, phase string) string {
	text := strings.ReplaceAll(pod(name, of, "", "phase: "+phase), "limits: {nvidia.com/gpu: 8}", "")
	labels := `labels: {batch.kubernetes.io/job-name: ray, ray.io/cluster: cluster, ray.io/node-type: head}, `
	return strings.NewReplacer("annotations:", labels+"annotations:", "name: trainer", "name: driver").Replace(text)
}

// answers answers every query alike.
type answers struct {
	value model.Value
	text  string
	at    time.Time
}

func (a *answers) Query(_ context.Context, text string, at time.Time, _ ...prometheusv1.Option) (model.Value, prometheusv1.Warnings, error) {
	a.text, a.at = text, at
	return a.value, nil, nil
}

func TestQueries(t *testing.T) {
	querier := &answers{}
	w := newWindows(t,
		owner("batch/v1", "Job", "a.b", "", profiled+`, nodewise.dev/metrics-query: 'sum(rate(s{namespace="$namespace",job="$name",pod=~"$pods"}[$window]))'`, ""),
		pod("a.b-0", "batch/v1 Job a.b", "", ""), pod("a.b-1", "batch/v1 Job a.b", "", ""))
	w.collector.Prometheus = querier
	querier.value = model.Vector{}
	for range 3 {
		w.expect("an empty reply")
	}
	if querier.text != `sum(rate(s{namespace="default",job="a.b",pod=~"a[.]b-0|a[.]b-1"}[60s]))` || !querier.at.Equal(w.end.Add(-time.Minute)) {
		t.Error(querier.text, querier.at)
	}
	for _, each := range []struct {
		value    model.Value
		expected []float64
	}{
		{model.Vector{{Value: 1.5}}, []float64{1.5}}, {&model.Scalar{Value: 2}, []float64{2}}, {model.Vector{{Value: 0}}, nil}, {model.Vector{{Value: model.SampleValue(math.NaN())}}, nil},
		{model.Vector{{Value: model.SampleValue(math.Inf(1))}}, nil}, {model.Vector{{Value: 1}, {Value: 2}}, nil}, {model.Matrix{}, nil}, {&model.String{}, nil},
	} {
		querier.value = each.value
		w.expect(each.value.String(), each.expected...)
	}
	for _, hostile := range []string{`a"} or vector(1) #`, "a|b", "a\n", `a\`, "", "a'", "a`"} {
		of := &job{pods: []*corev1.Pod{{}}}
		of.pods[0].Namespace, of.pods[0].Name = "default", hostile
		if text, err := of.query(time.Minute); err == nil {
			t.Errorf("%q became part of %s", hostile, text)
		}
	}
	for _, wrong := range []string{"prometheus:9090", "", "http://", "file:///etc", "http://a b"} {
		if _, err := Prometheus(wrong, "", ""); err == nil || !strings.Contains(err.Error(), "URL") {
			t.Error(wrong, err)
		}
	}
	blank := filepath.Join(t.TempDir(), "blank")
	if err := os.WriteFile(blank, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, wrong := range []struct{ scheme, token, authorities, err string }{
		{"http", blank, "", "plain text"}, {"https", blank, "", "-prometheus-token-file"}, {"https", blank + "absent", "", "-prometheus-token-file"},
		{"https", "", blank, "-prometheus-ca-file"}, {"https", "", blank + "absent", "-prometheus-ca-file"},
	} {
		_, err := Prometheus(wrong.scheme+"://me:password@prometheus:9090", wrong.token, wrong.authorities)
		if err == nil || !strings.Contains(err.Error(), wrong.err) || strings.Contains(err.Error(), "password") {
			t.Error(wrong, err)
		}
	}
}

// Many queries are read at a time; none may take the memory of all.
func TestReplyOfPrometheusIsLimited(t *testing.T) {
	for count, valid := range map[int]bool{1000: true, 10_000: false} {
		reply := `{"status": "success", "data": {"resultType": "vector", "result": [` + strings.Repeat(`{"metric": {"pod": "a"}, "value": [1, "1"]},`, count-1) + `{"metric": {}, "value": [1, "1"]}]}}`
		serving := httptest.NewServer(http.HandlerFunc(func(writer http.ResponseWriter, _ *http.Request) { _, _ = writer.Write([]byte(reply)) }))
		t.Cleanup(serving.Close)
		querier, err := Prometheus(serving.URL, "", "")
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = querier.Query(t.Context(), "up", time.Now())
		if valid && err != nil || !valid && (err == nil || !strings.Contains(err.Error(), "too large")) {
			t.Error(count, err)
		}
	}
}

// The token goes to the Prometheus that the operator names, and not to a server that it redirects to.
func TestTokenStaysWithPrometheus(t *testing.T) {
	var received []string
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		received = append(received, "elsewhere "+request.Header.Get("Authorization"))
	}))
	t.Cleanup(elsewhere.Close)
	redirecting := httptest.NewTLSServer(http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		received = append(received, request.Header.Get("Authorization"))
		http.Redirect(writer, request, elsewhere.URL, http.StatusTemporaryRedirect)
	}))
	t.Cleanup(redirecting.Close)
	token, authorities := filepath.Join(t.TempDir(), "token"), filepath.Join(t.TempDir(), "ca.crt")
	for path, content := range map[string][]byte{token: []byte("secret\n"), authorities: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: redirecting.Certificate().Raw})} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	querier, err := Prometheus(redirecting.URL, token, authorities)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := querier.Query(t.Context(), "up", time.Now()); err == nil || !slices.Equal(received, []string{"Bearer secret"}) {
		t.Error(received, err)
	}
}

// A completed job of which no window was observed gives one observation, if nothing changed since its start.
func TestWholeRun(t *testing.T) {
	status := func(phase string) string {
		return fmt.Sprintf("phase: %s, startTime: %q", phase, begin.Add(-30*time.Second).Format(time.RFC3339))
	}
	set := func(annotations, status string) string {
		return owner("jobset.x-k8s.io/v1alpha2", "JobSet", "set", "", annotations, status)
	}
	completed := fmt.Sprintf(`conditions: [{type: Completed, status: "True", lastTransitionTime: %q}], restarts: `, begin.Add(30*time.Minute-30*time.Second).Format(time.RFC3339))
	stated := profiled + `, nodewise.dev/total-steps: "3600"`
	for name, each := range map[string]struct {
		annotations, status string
		windows             int
		restarted           bool
		expected            []float64
	}{
		"completed":        {stated, completed + "0", 30, false, []float64{2}},
		"samples":          {profiled + `, nodewise.dev/samples: "1843200"`, completed + "0", 30, false, []float64{2}},
		"work not stated":  {profiled, completed + "0", 30, false, nil},
		"restarted":        {stated, completed + "1", 30, false, nil},
		"other pods":       {stated, completed + "0", 30, true, nil},
		"failed":           {stated, `conditions: [{type: Failed, status: "True"}]`, 30, false, nil},
		"not yet complete": {stated, "restarts: 0", 30, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWindows(t, set(each.annotations, "restarts: 0"), owner("batch/v1", "Job", "part", "jobset.x-k8s.io/v1alpha2 JobSet set", "", ""),
				pod("first", "batch/v1 Job part", "", status("Running")))
			for index := range each.windows {
				if each.restarted && index == 20 {
					w.remove("Pod", "v1", "first")
					w.write(pod("again", "batch/v1 Job part", "", status("Running")))
				}
				w.expect("it runs, and nothing states its speed")
			}
			last := "first"
			if each.restarted {
				last = "again"
			}
			w.write(pod(last, "batch/v1 Job part", "", status("Succeeded")))
			w.write(set(each.annotations, each.status))
			w.expect(name, each.expected...)
			w.expect("only once")
		})
	}
}
