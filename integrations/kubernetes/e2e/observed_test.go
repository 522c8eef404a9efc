package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	corev1 "k8s.io/api/core/v1"
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

// Steps are counted by an exporter that a real Prometheus scrapes. The job's query selects its own pods: another pod counts 100 times as fast.
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
	collect(t, "-window", "5s", "-warm-up", "5s", "-prometheus", "http://"+address)
	observed(t, "team/scraped", 3, 5)
	ran := observations(t.Context(), t, "team/scraped").GetConfigurations()
	if last := len(ran.GetNodes()) - 1; ran.GetNodes()[last] != 2 || ran.GetWorkers()[last] != 16 {
		t.Error(ran)
	}
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

// A RayJob's status is written as KubeRay writes it. Windows before Ray starts the training and during another attempt are left out.
func TestStatusOfARayJob(t *testing.T) {
	if rig.noModules != nil {
		t.Skip("the definitions of operators' kinds cannot be had here: ", rig.noModules)
	}
	if _, err := exec.LookPath("prometheus"); err != nil {
		t.Skip("there is no prometheus here")
	}
	addNodes(t, "rayed", "V100", 2, "")
	for _, name := range []string{"team/rayed", "team/witness"} {
		store(t, name, measured(t, "V100"))
	}
	job(t, "witness", "rayed", map[string]string{
		"nodewise.dev/profile": "team/witness", "nodewise.dev/settings": `{"global_batch_samples": 512, "sync_mode": "SYNC_MODE_ALLREDUCE"}`,
		"nodewise.dev/metrics-query": `sum(rate(steps_total[$window]))`,
	})
	placed(t, "witness", 1)
	windows := func(count int) { // waits until another job has been observed in so many more windows
		t.Helper()
		before := len(observations(t.Context(), t, "team/witness").GetStepsPerSecond())
		err := testcluster.Until(t.Context(), func(ctx context.Context) (bool, error) {
			return len(observations(ctx, t, "team/witness").GetStepsPerSecond()) >= before+count, nil
		})
		if err != nil {
			t.Fatal(err, lastLines(rig.Log("collector"), 10))
		}
	}
	address := startPrometheus(t, fmt.Sprintf(`{global: {scrape_interval: 500ms}, scrape_configs: [{job_name: trainers, static_configs: [{targets: [%q]}]}]}`, exporter(t, 4)))
	ray := create(t, read(t, `{apiVersion: ray.io/v1, kind: RayJob, metadata: {name: rayed, namespace: default, annotations: {nodewise.dev/profile: team/rayed,
			nodewise.dev/settings: '{"global_batch_samples": 512, "sync_mode": "SYNC_MODE_ALLREDUCE"}', nodewise.dev/metrics-query: 'sum(rate(steps_total[$window]))'}},
		spec: {entrypoint: python train.py, rayClusterSpec: {`+rayGroups+`}}}`))
	cluster := read(t, `{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: rayed, namespace: default}, spec: {`+rayGroups+`}}`)
	yes := true
	cluster.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "ray.io/v1", Kind: "RayJob", Name: "rayed", UID: ray.GetUID(), Controller: &yes}})
	create(t, cluster)
	worker := read(t, `{apiVersion: v1, kind: Pod, metadata: {name: rayed-worker, namespace: default}, spec: {nodeSelector: {pool: rayed}, containers: [`+trainer+`]}}`)
	worker.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "ray.io/v1", Kind: "RayCluster", Name: "rayed", UID: cluster.GetUID(), Controller: &yes}})
	create(t, worker)
	say := func(text string) {
		t.Helper()
		status := read(t, `{status: `+text+`}`).Object["status"]
		ray.Object["status"] = status
		if err := rig.kubernetes.Status().Update(t.Context(), ray); err != nil {
			t.Fatal(err)
		}
	}
	say(`{jobDeploymentStatus: Initializing}`)
	collect(t, "-window", "2s", "-warm-up", "2s", "-prometheus", "http://"+address)
	windows(3) // and the warm-up
	started := time.Now()
	say(fmt.Sprintf(`{jobDeploymentStatus: Running, jobId: first, jobStatus: RUNNING, rayJobInfo: {startTime: %q}}`, started.UTC().Format(time.RFC3339)))
	observed(t, "team/rayed", 3, 5)
	for _, at := range observations(t.Context(), t, "team/rayed").GetMeasuredAtUnixSeconds()[3:] {
		if at < float64(started.Unix())+4 { // a whole window after the warm-up
			t.Error("a window before the training is observed: ", at, started)
		}
	}
	say(`{jobDeploymentStatus: Retrying, jobId: first, jobStatus: FAILED, failed: 1}`)
	windows(1) // the present one ends
	before := observations(t.Context(), t, "team/rayed").GetMeasuredAtUnixSeconds()
	windows(3)
	if after := observations(t.Context(), t, "team/rayed").GetMeasuredAtUnixSeconds(); len(after) != len(before) {
		t.Error("windows of a job that does not train are observed: ", after[len(before):])
	}
	if !strings.Contains(rig.Log("collector"), `"source":"query"`) {
		t.Error(lastLines(rig.Log("collector"), 10))
	}
}
