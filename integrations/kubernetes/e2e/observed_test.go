package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodewise/nodewise/integrations/kubernetes/internal/testcluster"
)

// collect runs the collector until the test ends.
func collect(t *testing.T, options ...string) {
	t.Helper()
	if err := startProcess(t.Context(), "collector", options...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { end(rig.processes["collector"]) })
}

// observed waits until a profile has more observations than those of measured, of which the last is within limits of steps per second, and
// returns their number.
func observed(t *testing.T, profile string, least, most float64) int {
	t.Helper()
	rates := []float64{}
	err := fmt.Errorf("never")
	for attempt := 0; attempt < 3 && err != nil; attempt++ { // the controllers' jobs take half a minute before they are measured
		err = testcluster.Until(t.Context(), func(ctx context.Context) (bool, error) {
			rates = observations(ctx, t, profile).GetStepsPerSecond()
			last := rates[len(rates)-1]
			return len(rates) > 3 && last > least && last < most, fmt.Errorf("%v", rates)
		})
	}
	if err != nil {
		t.Fatalf("%s: %v\n%s", profile, err, lastLines(rig.Log("collector"), 10))
	}
	return len(rates)
}

// Steps are counted by an exporter that a real Prometheus scrapes. The job's query selects its own pods: another pod counts 100 times as fast. A
// proxy in front of Prometheus demands a bearer token, which changes.
func TestWhatPrometheusSaysIsObserved(t *testing.T) {
	if _, err := exec.LookPath("prometheus"); err != nil {
		t.Skip("there is no prometheus here")
	}
	addNodes(t, "scraped", "V100", 2, "")
	store(t, "team/scraped", measured(t, "V100"))
	made := job(t, "scraped", "scraped", map[string]string{
		"nodewise.dev/profile": "team/scraped", "nodewise.dev/nodes": "2", "nodewise.dev/settings": `{"global_batch_samples": 512, "sync_mode": "SYNC_MODE_ALLREDUCE"}`,
		"nodewise.dev/metrics-query": `avg(rate(steps_total{namespace="$namespace",pod=~"$pods"}[$window]))`,
	})
	placed(t, "scraped", int(*made.Spec.Parallelism))
	pods := &corev1.PodList{}
	if err := rig.kubernetes.List(t.Context(), pods, client.MatchingLabels{"job-name": "scraped"}); err != nil {
		t.Fatal(err)
	}
	targets := fmt.Sprintf(`{targets: [%q], labels: {namespace: default, pod: other-pod}}`, exporter(t, 400))
	for _, pod := range pods.Items {
		targets += fmt.Sprintf(`, {targets: [%q], labels: {namespace: default, pod: %s}}`, exporter(t, 4), pod.Name)
	}
	address := startPrometheus(t, `{global: {scrape_interval: 500ms}, scrape_configs: [{job_name: trainers, static_configs: [`+targets+`]}]}`)
	demanded, tokenFile := &atomic.Value{}, filepath.Join(t.TempDir(), "token")
	change := func(token string) {
		t.Helper()
		demanded.Store("Bearer " + token)
		if err := os.WriteFile(tokenFile, []byte(token+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	change("first")
	guarded, authorities := guard(t, address, demanded)
	collect(t, "-window", "5s", "-warm-up", "5s", "-prometheus", guarded, "-prometheus-token-file", tokenFile, "-prometheus-ca-file", authorities)
	observed(t, "team/scraped", 3, 5)
	change("second")
	for changed := time.Now(); slices.Max(observations(t.Context(), t, "team/scraped").GetMeasuredAtUnixSeconds()) <= float64(changed.Unix()); time.Sleep(100 * time.Millisecond) {
		if time.Since(changed) > time.Minute {
			t.Fatal("no window that ends later is observed with another token: ", lastLines(rig.Log("collector"), 10))
		}
	}
	observed(t, "team/scraped", 3, 5)
	ran := observations(t.Context(), t, "team/scraped").GetConfigurations()
	if last := len(ran.GetNodes()) - 1; ran.GetNodes()[last] != 2 || ran.GetWorkers()[last] != 16 {
		t.Error(ran)
	}
}

// guard serves a server's replies over TLS to those who send what is demanded as their authorization. It returns its URL and a file of its authority.
func guard(t *testing.T, address string, demanded *atomic.Value) (guarded, authorities string) {
	t.Helper()
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: address})
	serving := httptest.NewTLSServer(http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		if request.Header.Get("Authorization") != demanded.Load() {
			http.Error(writer, "Unauthorized", http.StatusUnauthorized)
			return
		}
		proxy.ServeHTTP(writer, request)
	}))
	t.Cleanup(serving.Close)
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: serving.Certificate().Raw})
	return serving.URL, rig.Write("guard.crt", text)
}

// exporter serves a counter that grows by so much in a second.
func exporter(t *testing.T, perSecond float64) string {
	t.Helper()
	registry, begun := prometheus.NewRegistry(), time.Now()
	registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "steps_total", Help: "Steps."}, func() float64 { return perSecond * time.Since(begun).Seconds() }))
	serving := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	t.Cleanup(serving.Close)
	return serving.Listener.Addr().String()
}

func startPrometheus(t *testing.T, config string) string {
	t.Helper()
	address, folder := free(t), t.TempDir()
	file := filepath.Join(folder, "prometheus.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	process := exec.Command("prometheus", "--config.file="+file, "--storage.tsdb.path="+folder, "--web.listen-address="+address) // #nosec G204 -- built by us
	log := &bytes.Buffer{}
	process.Stdout, process.Stderr = log, log
	process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { end(process) })
	err := testcluster.Until(t.Context(), func(context.Context) (bool, error) {
		reply, err := http.Get("http://" + address + "/-/ready")
		if err != nil {
			return false, err
		}
		defer reply.Body.Close()
		return reply.StatusCode == http.StatusOK, fmt.Errorf("%s", reply.Status)
	})
	if err != nil {
		end(process)
		t.Fatal("prometheus: ", err, log.String())
	}
	return address
}

// reporter reports the current step to the Trainer's server of statuses, as a training process does: with the variables, the authority and the
// token that the Trainer's controller gives to its pods.
type reporter struct {
	client *http.Client
	url    string
	pod    *corev1.Pod
	lock   sync.Mutex
	begun  time.Time
	rate   float64 // steps per second
}

func newReporter(t *testing.T, pod *corev1.Pod) *reporter {
	t.Helper()
	found := &reporter{pod: pod}
	for _, variable := range pod.Spec.Containers[0].Env {
		if variable.Name == "KUBEFLOW_TRAINER_SERVER_URL" {
			found.url = variable.Value
		}
	}
	authority := &corev1.ConfigMap{}
	for _, volume := range pod.Spec.Volumes {
		if volume.Projected == nil {
			continue
		}
		for _, source := range volume.Projected.Sources {
			if source.ConfigMap == nil {
				continue
			}
			if err := rig.kubernetes.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: source.ConfigMap.Name}, authority); err != nil {
				t.Fatal(err)
			}
		}
	}
	pool := x509.NewCertPool()
	address, err := url.Parse(found.url)
	if err != nil || !pool.AppendCertsFromPEM([]byte(authority.Data["ca.crt"])) {
		t.Fatal(err, authority.Data, found.url)
	}
	found.client = &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: address.Hostname(), MinVersion: tls.VersionTLS12},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) { // the cluster has no DNS
			_, port, _ := net.SplitHostPort(rig.listens["status"])
			return (&net.Dialer{}).DialContext(ctx, network, "127.0.0.1:"+port)
		},
	}}
	return found
}

// restart begins again at step 0, with another speed.
func (r *reporter) restart(rate float64) {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.begun, r.rate = time.Now(), rate
}

func (r *reporter) report(ctx context.Context) error {
	audience := ""
	for _, volume := range r.pod.Spec.Volumes {
		if volume.Projected == nil {
			continue
		}
		for _, source := range volume.Projected.Sources {
			if source.ServiceAccountToken != nil {
				audience = source.ServiceAccountToken.Audience
			}
		}
	}
	token, err := tokenOf(ctx, "default", "default", audience)
	if err != nil {
		return err
	}
	r.lock.Lock()
	now := time.Now().UTC()
	step := int(r.rate * now.Sub(r.begun).Seconds())
	r.lock.Unlock()
	body, err := json.Marshal(map[string]any{"trainerStatus": map[string]any{
		"lastUpdatedTime": now.Format(time.RFC3339Nano), "progressPercentage": step / 100, "metrics": []map[string]string{{"name": "current_step", "value": fmt.Sprint(step)}},
	}})
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	reply, err := r.client.Do(request)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	if text, _ := io.ReadAll(reply.Body); reply.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", reply.Status, text)
	}
	return nil
}

// Real controllers of the Trainer and of JobSet: what a trainer posts to the Trainer's server becomes observations. After a restart by JobSet the
// training is half as fast; no observation mixes the two.
func TestWhatTrainJobsReportIsObserved(t *testing.T) {
	addNodes(t, "reported", "V100", 2, "")
	startControllers(t, "jobset", "trainer-controller-manager")
	create(t, read(t, `{apiVersion: trainer.kubeflow.org/v1alpha1, kind: ClusterTrainingRuntime, metadata: {name: torch-reported, labels: {trainer.kubeflow.org/framework: torch}},
		spec: {mlPolicy: {numNodes: 1, torch: {}}, template: {spec: {failurePolicy: {maxRestarts: 3}, replicatedJobs: [{name: node,
			template: {metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}, spec: {backoffLimit: 0,
				template: {spec: {serviceAccountName: default, nodeSelector: {pool: reported}, containers: [{name: node, image: pytorch}]}}}}}]}}}}`))
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "default"}}
	if err := rig.kubernetes.Create(t.Context(), account); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	store(t, "team/reported", measured(t, "V100"))
	create(t, read(t, `{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, metadata: {name: reported, namespace: default, annotations: {
			nodewise.dev/profile: team/reported, nodewise.dev/settings: '{"global_batch_samples": 512, "sync_mode": "SYNC_MODE_ALLREDUCE"}'}},
		spec: {runtimeRef: {name: torch-reported}, trainer: {numNodes: 2, resourcesPerNode: {limits: {nvidia.com/gpu: 8}}}}}`))
	pods := runningPods(t, "reported", 2)
	reports := newReporter(t, &pods[0])
	reports.restart(8)
	if err := testcluster.Until(t.Context(), func(ctx context.Context) (bool, error) { err := reports.report(ctx); return err == nil, err }); err != nil {
		t.Fatal(err, lastLines(rig.Log("trainer-controller-manager"), 20))
	}
	ctx, stop := context.WithCancel(t.Context())
	var reporting sync.WaitGroup
	reporting.Go(func() {
		for ctx.Err() == nil {
			if err := reports.report(ctx); err != nil && ctx.Err() == nil {
				t.Log(err)
			}
			time.Sleep(time.Second) // between reports
		}
	})
	t.Cleanup(func() { stop(); reporting.Wait() })
	collect(t, "-window", "5s", "-warm-up", "5s")
	before := observed(t, "team/reported", 7.4, 8.6)
	pods[1].Status.Phase = corev1.PodFailed
	if err := rig.kubernetes.Status().Update(t.Context(), &pods[1]); err != nil {
		t.Fatal(err)
	}
	set := read(t, `{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet}`)
	err := testcluster.Until(t.Context(), func(ctx context.Context) (bool, error) {
		if err := rig.kubernetes.Get(ctx, client.ObjectKey{Namespace: "default", Name: "reported"}, set); err != nil {
			return false, err
		}
		restarts, _, _ := unstructured.NestedInt64(set.Object, "status", "restarts")
		return restarts == 1, fmt.Errorf("%v", set.Object["status"])
	})
	if err != nil {
		t.Fatal(err)
	}
	reports.restart(4)
	runningPods(t, "reported", 2)
	observed(t, "team/reported", 3.7, 4.3)
	found := observations(t.Context(), t, "team/reported")
	for index, rate := range found.GetStepsPerSecond()[3:] {
		slow := index+3 >= before && rate > 3.7 && rate < 4.3
		if !slow && (rate < 7.4 || rate > 8.6) || found.GetConfigurations().GetNodes()[index+3] != 2 || found.GetConfigurations().GetWorkers()[index+3] != 16 {
			t.Error(found)
		}
	}
}

// runningPods waits until so many pods of a JobSet run.
func runningPods(t *testing.T, name string, count int) (running []corev1.Pod) {
	t.Helper()
	err := testcluster.Until(t.Context(), func(ctx context.Context) (bool, error) {
		pods := &corev1.PodList{}
		if err := rig.kubernetes.List(ctx, pods, client.MatchingLabels{"jobset.sigs.k8s.io/jobset-name": name}); err != nil {
			return false, err
		}
		running = nil
		for _, pod := range pods.Items {
			if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
				running = append(running, pod)
			}
		}
		return len(running) == count, fmt.Errorf("%d of %d pods run", len(running), count)
	})
	if err != nil {
		t.Fatal(name, ": ", err, "\n", lastLines(rig.Log("kube-controller-manager"), 5), lastLines(rig.Log("kube-scheduler"), 5))
	}
	return running
}

// A JobSet that its controller completes gives one observation of its whole run, as nothing else states its speed.
func TestWholeRunOfAJobSet(t *testing.T) {
	addNodes(t, "whole", "V100", 2, "")
	startControllers(t, "jobset")
	store(t, "team/whole", measured(t, "V100"))
	collect(t, "-window", "1s", "-warm-up", "0s")
	create(t, read(t, `{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: whole, namespace: default, annotations: {nodewise.dev/profile: team/whole,
			nodewise.dev/total-steps: "60", nodewise.dev/settings: '{"global_batch_samples": 512, "sync_mode": "SYNC_MODE_ALLREDUCE"}'}},
		spec: {replicatedJobs: [{name: part, replicas: 2, template: {spec: {parallelism: 1, completions: 1, template: {spec: {restartPolicy: Never, nodeSelector: {pool: whole}, containers: [`+trainer+`]}}}}}]}}`))
	pods, begun := runningPods(t, "whole", 2), time.Now()
	time.Sleep(6 * time.Second) // the training
	for index := range pods {
		pods[index].Status.Phase = corev1.PodSucceeded
		if err := rig.kubernetes.Status().Update(t.Context(), &pods[index]); err != nil {
			t.Fatal(err)
		}
	}
	observed(t, "team/whole", 60/(time.Since(begun).Seconds()+3), 60./5)
	found := observations(t.Context(), t, "team/whole")
	if ran := found.GetConfigurations(); found.GetStepsCounts()[3] != 60 || ran.GetNodes()[3] != 2 || len(found.GetStepsPerSecond()) != 4 {
		t.Error(found)
	}
}

// others runs a job with the same speed beside the one that a test changes. The function that it returns waits until that job was observed in so
// many more windows.
func others(t *testing.T, pool, query string) func(windows int) {
	t.Helper()
	name := "team/beside-" + pool
	store(t, name, measured(t, "V100"))
	job(t, "beside-"+pool, pool, map[string]string{
		"nodewise.dev/profile": name, "nodewise.dev/settings": `{"global_batch_samples": 512, "sync_mode": "SYNC_MODE_ALLREDUCE"}`, "nodewise.dev/metrics-query": query,
	})
	placed(t, "beside-"+pool, 1)
	return func(windows int) {
		t.Helper()
		before := len(observations(t.Context(), t, name).GetStepsPerSecond())
		err := testcluster.Until(t.Context(), func(ctx context.Context) (bool, error) {
			return len(observations(ctx, t, name).GetStepsPerSecond()) >= before+windows, nil
		})
		if err != nil {
			t.Fatal(err, lastLines(rig.Log("collector"), 10))
		}
	}
}

const rayQuery = `sum(rate(steps_total[$window]))`

// rayJob is a job of Ray, whose speed a query yields.
func rayJob(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	store(t, "team/"+name, measured(t, "V100"))
	return create(t, read(t, `{apiVersion: ray.io/v1, kind: RayJob, metadata: {name: `+name+`, namespace: default, annotations: {nodewise.dev/profile: team/`+name+`,
			nodewise.dev/settings: '{"global_batch_samples": 512, "sync_mode": "SYNC_MODE_ALLREDUCE"}', nodewise.dev/metrics-query: '`+rayQuery+`'}},
		spec: {entrypoint: python train.py, submissionMode: HTTPMode, backoffLimit: 1, rayClusterSpec: {`+rayGroups+`}}}`))
}

func steadyPrometheus(t *testing.T) string {
	t.Helper()
	return "http://" + startPrometheus(t, fmt.Sprintf(`{global: {scrape_interval: 500ms}, scrape_configs: [{job_name: trainers, static_configs: [{targets: [%q]}]}]}`, exporter(t, 4)))
}

// A RayJob's status is written as KubeRay writes it. Windows before Ray starts the training and after it fails are left out.
func TestStatusOfARayJob(t *testing.T) {
	if rig.noModules != nil {
		t.Skip("the definitions of operators' kinds cannot be had here: ", rig.noModules)
	}
	if _, err := exec.LookPath("prometheus"); err != nil {
		t.Skip("there is no prometheus here")
	}
	addNodes(t, "rayed", "V100", 2, "")
	pass, address := others(t, "rayed", rayQuery), steadyPrometheus(t)
	ray := rayJob(t, "rayed")
	cluster := read(t, `{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: rayed, namespace: default}, spec: {`+rayGroups+`}}`)
	yes := true
	cluster.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "ray.io/v1", Kind: "RayJob", Name: "rayed", UID: ray.GetUID(), Controller: &yes}})
	create(t, cluster)
	worker := read(t, `{apiVersion: v1, kind: Pod, metadata: {name: rayed-worker, namespace: default}, spec: {nodeSelector: {pool: rayed}, containers: [`+trainer+`]}}`)
	worker.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "ray.io/v1", Kind: "RayCluster", Name: "rayed", UID: cluster.GetUID(), Controller: &yes}})
	create(t, worker)
	say := func(text string) {
		t.Helper()
		ray.Object["status"] = read(t, `{status: `+text+`}`).Object["status"]
		if err := rig.kubernetes.Status().Update(t.Context(), ray); err != nil {
			t.Fatal(err)
		}
	}
	say(`{jobDeploymentStatus: Initializing}`)
	collect(t, "-window", "2s", "-warm-up", "2s", "-prometheus", address)
	pass(3) // and the warm-up
	started := time.Now()
	say(fmt.Sprintf(`{jobDeploymentStatus: Running, jobId: first, jobStatus: RUNNING, rayJobInfo: {startTime: %q}}`, started.UTC().Format(time.RFC3339)))
	observed(t, "team/rayed", 3, 5)
	for _, at := range observations(t.Context(), t, "team/rayed").GetMeasuredAtUnixSeconds()[3:] {
		if at < float64(started.Unix())+4 { // a whole window after the warm-up
			t.Error("a window before the training is observed: ", at, started)
		}
	}
	say(`{jobDeploymentStatus: Retrying, jobId: first, jobStatus: FAILED, failed: 1}`)
	unobserved(t, "team/rayed", pass)
	if !strings.Contains(rig.Log("collector"), `"source":"query"`) {
		t.Error(lastLines(rig.Log("collector"), 10))
	}
}

// unobserved checks that windows of a job pass without an observation.
func unobserved(t *testing.T, profile string, pass func(windows int)) {
	t.Helper()
	pass(1) // the present one ends
	before := observations(t.Context(), t, profile).GetMeasuredAtUnixSeconds()
	pass(3)
	if after := observations(t.Context(), t, profile).GetMeasuredAtUnixSeconds(); len(after) != len(before) {
		t.Error("windows of a job that does not train are observed: ", after[len(before):])
	}
}

// dashboard answers KubeRay as the head of a cluster of Ray does. KubeRay asks it through the API server, which wants a pod with its address.
type dashboard struct {
	lock   sync.Mutex
	listen *net.TCPAddr
	// jobs are the submitted ones, the oldest first, and what Ray says of each.
	jobs     []string
	statuses map[string]map[string]any
}

func newDashboard(t *testing.T) *dashboard {
	t.Helper()
	found := &dashboard{statuses: map[string]map[string]any{}}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, each := range addresses {
		network, isNetwork := each.(*net.IPNet)
		if !isNetwork || network.IP.To4() == nil || !network.IP.IsGlobalUnicast() {
			continue
		}
		listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: network.IP})
		if err != nil {
			t.Fatal(err)
		}
		found.listen = listener.Addr().(*net.TCPAddr)
		server := &http.Server{Handler: found, ReadHeaderTimeout: time.Minute}
		go func() { _ = server.Serve(listener) }()
		t.Cleanup(func() { _ = server.Close() })
		return found
	}
	t.Skip("this machine has no address to which the API server would forward")
	return nil
}

func (d *dashboard) ServeHTTP(writer http.ResponseWriter, request *http.Request) {
	d.lock.Lock()
	defer d.lock.Unlock()
	if request.Method == http.MethodPost {
		asked := map[string]any{}
		_ = json.NewDecoder(request.Body).Decode(&asked)
		id := fmt.Sprint(asked["submission_id"])
		d.jobs, d.statuses[id] = append(d.jobs, id), map[string]any{"submission_id": id, "status": "PENDING"}
		_ = json.NewEncoder(writer).Encode(map[string]any{"job_id": id})
		return
	}
	known, submitted := d.statuses[filepath.Base(request.URL.Path)]
	if !submitted {
		http.NotFound(writer, request)
		return
	}
	_ = json.NewEncoder(writer).Encode(known)
}

// say changes what Ray says of the newest job.
func (d *dashboard) say(status string, more map[string]any) {
	d.lock.Lock()
	defer d.lock.Unlock()
	newest := d.statuses[d.jobs[len(d.jobs)-1]]
	newest["status"] = status
	for name, value := range more {
		newest[name] = value
	}
}

// attach gives the address of the dashboard to running heads, as a network and a controller of endpoints do, until the test ends.
func (d *dashboard) attach(t *testing.T) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var attaching sync.WaitGroup
	attaching.Go(func() {
		for ; ctx.Err() == nil; time.Sleep(200 * time.Millisecond) {
			heads := &corev1.PodList{}
			_ = rig.kubernetes.List(ctx, heads, client.MatchingLabels{"ray.io/node-type": "head"})
			for index := range heads.Items {
				if head := &heads.Items[index]; head.Status.Phase == corev1.PodRunning && head.Status.PodIP == "" {
					d.serveFor(ctx, head)
				}
			}
		}
	})
	t.Cleanup(func() { stop(); attaching.Wait() })
}

func (d *dashboard) serveFor(ctx context.Context, head *corev1.Pod) {
	address := d.listen.IP.String()
	head.Status.PodIP, head.Status.PodIPs = address, []corev1.PodIP{{IP: address}}
	service, port, portName, ready := head.Labels["ray.io/cluster"]+"-head-svc", int32(d.listen.Port), "dashboard", true
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: head.Namespace, Name: service, Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: &portName, Port: &port}},
		Endpoints: []discoveryv1.Endpoint{{
			Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: &ready},
			TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: head.Namespace, Name: head.Name, UID: head.UID},
		}},
	}
	if err := rig.kubernetes.Create(ctx, slice); err == nil {
		_ = rig.kubernetes.Status().Update(ctx, head)
	}
}

// KubeRay's own controller writes the status of a RayJob that waits, trains, fails, is tried again on another cluster, and succeeds. Only Ray itself
// is emulated.
func TestRayJobOfKubeRay(t *testing.T) {
	if _, err := exec.LookPath("prometheus"); err != nil {
		t.Skip("there is no prometheus here")
	}
	addNodes(t, "kuberay", "V100", 3, "")
	startControllers(t, "ray-operator")
	says := newDashboard(t)
	says.attach(t)
	pass, address := others(t, "kuberay", rayQuery), steadyPrometheus(t)
	ray := rayJob(t, "by-kuberay")
	status := func(expected map[string]string) {
		t.Helper()
		err := error(nil)
		for attempt := 0; attempt == 0 || err != nil && attempt < 3; attempt++ { // KubeRay looks every 3 s
			err = testcluster.Until(t.Context(), func(ctx context.Context) (bool, error) {
				if err := rig.kubernetes.Get(ctx, client.ObjectKeyFromObject(ray), ray); err != nil {
					return false, err
				}
				found, _, _ := unstructured.NestedMap(ray.Object, "status")
				for name, value := range expected {
					if fmt.Sprint(found[name]) != value {
						return false, fmt.Errorf("%v", found)
					}
				}
				return true, nil
			})
		}
		if err != nil {
			t.Fatal(err, ray.Object["status"], "\n", lastLines(rig.Log("ray-operator"), 10))
		}
	}
	status(map[string]string{"jobStatus": "PENDING"})
	collect(t, "-window", "2s", "-warm-up", "2s", "-prometheus", address)
	pass(3)
	unobserved(t, "team/by-kuberay", pass)
	says.say("RUNNING", map[string]any{"start_time": time.Now().UnixMilli()})
	observed(t, "team/by-kuberay", 3, 5)
	says.say("FAILED", map[string]any{"end_time": time.Now().UnixMilli()})
	status(map[string]string{"failed": "1", "jobStatus": "PENDING"})
	unobserved(t, "team/by-kuberay", pass)
	before := len(observations(t.Context(), t, "team/by-kuberay").GetStepsPerSecond())
	says.say("RUNNING", map[string]any{"start_time": time.Now().UnixMilli()})
	status(map[string]string{"jobStatus": "RUNNING"})
	for observed(t, "team/by-kuberay", 3, 5) == before {
		pass(1)
	}
	says.say("SUCCEEDED", map[string]any{"end_time": time.Now().UnixMilli()})
	status(map[string]string{"jobDeploymentStatus": "Complete"})
	unobserved(t, "team/by-kuberay", pass)
}

// KubeRay's own submitter prints what the workers of a RayJob do, as Ray forwards it, and its log is read. The workers' own logs say other steps.
func TestSubmitterOfKubeRay(t *testing.T) {
	addNodes(t, "submitted", "V100", 1, "")
	startControllers(t, "ray-operator")
	says := newDashboard(t)
	says.attach(t)
	serveLogs(t, func(container string) (string, int) {
		if strings.HasSuffix(container, "/ray-job-submitter") {
			return "\x1b[36m(RayTrainWorker pid=7, ip=10.0.0.5)\x1b[0m step %d", 4
		}
		return "step %d", 100
	})
	store(t, "team/submitted", measured(t, "V100"))
	ray := create(t, read(t, `{apiVersion: ray.io/v1, kind: RayJob, metadata: {name: submitted, namespace: default, annotations: {nodewise.dev/profile: team/submitted,
			nodewise.dev/settings: '{"global_batch_samples": 512, "sync_mode": "SYNC_MODE_ALLREDUCE"}', nodewise.dev/steps-pattern: 'step (?P<step>\d+)'}},
		spec: {entrypoint: python train.py, rayClusterSpec: {`+rayGroups+`}}}`))
	err := testcluster.Until(t.Context(), func(ctx context.Context) (bool, error) {
		pods := &corev1.PodList{}
		err := rig.kubernetes.List(ctx, pods, client.MatchingLabels{"job-name": "submitted"})
		return len(pods.Items) == 1 && pods.Items[0].Status.Phase == corev1.PodRunning, err
	})
	if err != nil {
		t.Fatal(err, lastLines(rig.Log("ray-operator"), 10))
	}
	if err := rig.kubernetes.Get(t.Context(), client.ObjectKeyFromObject(ray), ray); err != nil {
		t.Fatal(err)
	}
	// What the submitter does.
	reply, err := http.Post("http://"+says.listen.String()+"/api/jobs/", "application/json", strings.NewReader(fmt.Sprintf(`{"submission_id": %q}`, at(ray.Object, "status.jobId"))))
	if err != nil {
		t.Fatal(err)
	}
	_ = reply.Body.Close()
	says.say("RUNNING", map[string]any{"start_time": time.Now().UnixMilli()})
	collect(t, "-window", "2s", "-warm-up", "2s")
	observed(t, "team/submitted", 3, 5)
	for _, rate := range observations(t.Context(), t, "team/submitted").GetStepsPerSecond()[3:] {
		if rate > 5 {
			t.Error("the log of a worker was read: ", rate)
		}
	}
}
