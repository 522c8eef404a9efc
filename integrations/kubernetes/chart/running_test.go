package chart

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/nodewise/nodewise/integrations/kubernetes/internal/certificates"
	"github.com/nodewise/nodewise/integrations/kubernetes/internal/testcluster"
)

const (
	release = "running" // and its namespace
	// accountAt is where pods have the token of their service account.
	accountAt = "/run/secrets/kubernetes.io/serviceaccount"
)

// serverAt is this process's own address for a server, because the port is the Service's.
var serverAt = fmt.Sprintf("127.%d.%d.5", 1+os.Getpid()/250%250, os.Getpid()%250)

// site is a release whose pods this test starts as a kubelet would, with the files of their volumes and the token of their service account.
type site struct {
	*testcluster.Cluster
	kubernetes client.Client
	program    string
	health     map[string]string
}

func (s *site) get(t *testing.T, name string, object client.Object) {
	t.Helper()
	if err := s.kubernetes.Get(t.Context(), client.ObjectKey{Namespace: release, Name: name}, object); err != nil {
		t.Fatal(err)
	}
}

func (s *site) createSecret(t *testing.T, name string, data map[string][]byte) {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: release, Name: name}, Data: data}
	if err := s.kubernetes.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
}

// writeSecret writes the files of a Secret that a volume shows, all or the listed ones.
func (s *site) writeSecret(t *testing.T, folder, name string, items []corev1.KeyToPath) {
	t.Helper()
	secret := &corev1.Secret{}
	s.get(t, name, secret)
	if len(items) == 0 {
		for key := range secret.Data {
			items = append(items, corev1.KeyToPath{Key: key, Path: key})
		}
	}
	for _, item := range items {
		writeFile(t, filepath.Join(folder, item.Path), secret.Data[item.Key])
	}
}

func writeFile(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// start starts a pod's only container in a mount namespace of its own, and waits until it is ready.
func (s *site) start(t *testing.T, process string) {
	t.Helper()
	deployment := &appsv1.Deployment{}
	s.get(t, release+"-"+process, deployment)
	pod := deployment.Spec.Template.Spec
	container, root := pod.Containers[0], t.TempDir()
	for _, mount := range container.VolumeMounts {
		for _, volume := range pod.Volumes {
			switch {
			case volume.Name != mount.Name:
			case volume.Projected != nil:
				for _, source := range volume.Projected.Sources {
					s.writeSecret(t, root+mount.MountPath, source.Secret.Name, source.Secret.Items)
				}
			default:
				s.writeSecret(t, root+mount.MountPath, volume.Secret.SecretName, nil)
			}
		}
	}
	token := &authenticationv1.TokenRequest{}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: release, Name: pod.ServiceAccountName}}
	if err := s.kubernetes.SubResource("token").Create(t.Context(), account, token); err != nil {
		t.Fatal(err)
	}
	writeFile(t, root+accountAt+"/token", []byte(token.Status.Token))
	writeFile(t, root+accountAt+"/namespace", []byte(release))
	writeFile(t, root+accountAt+"/ca.crt", s.Config.CAData)
	writeFile(t, root+"/etc/hosts", []byte(serverAt+" running.running.svc\n"))
	api, err := url.Parse(s.Config.Host)
	if err != nil {
		t.Fatal(err)
	}
	environment := []string{"KUBERNETES_SERVICE_HOST=" + api.Hostname(), "KUBERNETES_SERVICE_PORT=" + api.Port()}
	configuration := &corev1.ConfigMap{}
	s.get(t, container.EnvFrom[0].ConfigMapRef.Name, configuration)
	for name, value := range configuration.Data {
		environment = append(environment, name+"="+value)
	}
	for _, variable := range container.Env {
		environment = append(environment, variable.Name+"="+variable.Value)
	}
	options := []string{"--mount"}
	if os.Geteuid() != 0 {
		options = append(options, "--map-root-user")
	}
	script := `mount -t tmpfs tmpfs /etc && cp -r "$0/etc/." /etc && mount -t tmpfs tmpfs /run && cp -r "$0/run/." /run && exec "$@"`
	command := exec.Command("unshare", append(append(options, "/bin/sh", "-c", script, root, s.program), container.Args...)...) // #nosec G204 -- rendered from the chart
	command.Env = environment
	log := &strings.Builder{}
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		if t.Failed() || strings.Contains(log.String(), "forbidden") {
			t.Errorf("%s: %s", process, log)
		}
	})
	if err := testcluster.Until(t.Context(), func(context.Context) (bool, error) {
		reply, err := http.Get("http://" + s.health[process] + container.ReadinessProbe.HTTPGet.Path)
		if err != nil {
			return false, err
		}
		return reply.StatusCode == http.StatusOK, reply.Body.Close()
	}); err != nil {
		t.Fatal(process, " is not ready: ", err)
	}
}

// serve starts a server with the release's own settings on the release's own address, stores a profile, and creates the Secrets of both sides.
func (s *site) serve(t *testing.T, command string) {
	t.Helper()
	folder := t.TempDir()
	authority, certificate, key, err := certificates.Make([]string{"running.running.svc", serverAt})
	if err != nil {
		t.Fatal(err)
	}
	s.createSecret(t, "nodewise-server-tls", map[string][]byte{"tls.crt": certificate, "tls.key": key, "ca.crt": authority})
	s.writeSecret(t, folder, "nodewise-server-tls", nil)
	settings, service := &corev1.ConfigMap{}, &corev1.Service{}
	s.get(t, release+"-settings", settings)
	s.get(t, release, service)
	config, listen := filepath.Join(folder, "nodewise.toml"), fmt.Sprintf("%s:%d", serverAt, service.Spec.Ports[0].Port)
	writeFile(t, config, []byte(settings.Data["nodewise.toml"]))
	table := filepath.Join(folder, "runs.csv")
	writeFile(t, table, []byte("job,device,nodes,workers,steps_per_s,global_batch\nfirst,V100,1,8,2,512\nfirst,V100,2,16,3.5,512\nfirst,V100,4,32,5.5,512\n"))
	nodewise := func(arguments ...string) *exec.Cmd {
		made := exec.Command(command, arguments...) // #nosec G204 -- the user's own
		made.Env = append(os.Environ(), "NODEWISE_STORE=sqlite:"+folder+"/nodewise.db", "NODEWISE_TRACES="+folder, "NODEWISE_LISTEN="+listen, "NODEWISE_HTTP=off", "NODEWISE_DRAIN_DELAY_S=0",
			"NODEWISE_TLS__CERTIFICATE="+folder+"/tls.crt", "NODEWISE_TLS__KEY="+folder+"/tls.key", "NODEWISE_TLS_CA="+folder+"/ca.crt")
		made.Stderr = os.Stderr
		return made
	}
	token, err := nodewise("tokens", "create", "--config", config, "--role", "read", "--role", "ingest", "--role", "schedule").Output()
	if err != nil {
		t.Fatal(err)
	}
	s.createSecret(t, "nodewise-integrations", map[string][]byte{"token": token})
	server := nodewise("serve", "--config", config)
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Signal(syscall.SIGTERM)
		_ = server.Wait()
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || !strings.HasPrefix(line, "listening on ") {
		t.Fatal(line, err)
	}
	ingest := nodewise("ingest", table, "--server", listen)
	ingest.Env = append(ingest.Env, "NODEWISE_TOKEN="+strings.TrimSpace(string(token)))
	if err := ingest.Run(); err != nil {
		t.Fatal(err)
	}
}

// freeAddress returns an address that nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	address, err := testcluster.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// Every process of a release runs as rendered, under its own token, and asks the release's server: by its name, over TLS, with a token.
func TestAReleaseRuns(t *testing.T) {
	cluster, kubernetes, _ := reach(t)
	command := cmp.Or(os.Getenv("NODEWISE_COMMAND"), "nodewise")
	if _, err := exec.LookPath(command); err != nil {
		t.Skip("skipped: there is no Nodewise server here; NODEWISE_COMMAND is not the absolute path of one, and nodewise is not on the PATH")
	}
	if err := exec.Command("unshare", "--mount", "--map-root-user", "true").Run(); err != nil {
		t.Skip("skipped: a process cannot have mounts of its own here: ", err)
	}
	if err := cluster.Install(definitions[0]); err != nil {
		t.Skip("skipped:", err)
	}
	s := &site{cluster, kubernetes, filepath.Join(t.TempDir(), "nodewise-kubernetes"), map[string]string{}}
	if out, err := exec.Command("go", "build", "-o", s.program, "../cmd/nodewise-kubernetes").CombinedOutput(); err != nil {
		t.Fatalf("%s", out)
	}
	listen := freeAddress(t)
	install := []string{"upgrade", "--install", release, deploy + "helm", "--namespace", release, "--create-namespace", "--kubeconfig", cluster.KubeConfig, "--set", "integrations.check.admissionCheck=running"}
	for _, process := range processes {
		s.health[process] = freeAddress(t)
		arguments := "-metrics=0,-health=" + s.health[process]
		switch process { // ports of this machine, not of a pod
		case "webhook":
			arguments += ",-listen=" + listen
		case "extender":
			arguments += ",-listen=" + freeAddress(t)
		}
		install = append(install, "--set", "integrations."+process+".enabled=true", "--set", "integrations."+process+".arguments={"+arguments+"}")
	}
	notes := rendered(t, "helm", install...)
	for _, command := range []string{"deploy/running -- nodewise tokens create", "secret generic nodewise-integrations --namespace running", "certificates -namespace running -release running"} {
		if !strings.Contains(notes, command) {
			t.Errorf("the notes lack %q: %s", command, notes)
		}
	}
	authority, err := exec.Command(s.program, "certificates", "-kubeconfig", cluster.KubeConfig, "-namespace", release, "-release", release, "-hosts", "127.0.0.1").Output()
	if err != nil {
		t.Fatal(err)
	}
	rendered(t, "helm", install...) // an upgrade does not remove the authority
	webhook := &admissionv1.MutatingWebhookConfiguration{}
	s.get(t, release, webhook)
	if string(webhook.Webhooks[0].ClientConfig.CABundle) != string(authority) {
		t.Errorf("the webhook's authority is %q", webhook.Webhooks[0].ClientConfig.CABundle)
	}
	s.serve(t, command)
	for _, process := range processes {
		s.start(t, process)
	}
	for _, process := range processes {
		if process == "extender" {
			continue
		}
		if err := testcluster.Until(t.Context(), func(ctx context.Context) (bool, error) {
			lease := &coordinationv1.Lease{}
			err := kubernetes.Get(ctx, client.ObjectKey{Namespace: release, Name: "nodewise-" + process}, lease)
			return err == nil && lease.Spec.HolderIdentity != nil, err
		}); err != nil {
			t.Error(process, " leads nothing: ", err)
		}
	}

	// The services of this cluster lead nowhere.
	address := "https://" + listen + *webhook.Webhooks[0].ClientConfig.Service.Path
	webhook.Webhooks[0].ClientConfig.URL, webhook.Webhooks[0].ClientConfig.Service = &address, nil
	if err := kubernetes.Update(t.Context(), webhook); err != nil {
		t.Fatal(err)
	}
	job := &batchv1.Job{}
	decode(t, `{metadata: {namespace: running, name: first, annotations: {nodewise.dev/profile: first, nodewise.dev/nodes: 1-2, nodewise.dev/settings: '{"global_batch_samples": 512}'}},
		spec: {suspend: true, parallelism: 1, completions: 1, completionMode: Indexed, template: {spec: {restartPolicy: Never, nodeSelector: {nvidia.com/gpu.product: V100},
		containers: [{name: trainer, image: training, resources: {limits: {nvidia.com/gpu: 8}}}]}}}}`, job)
	if err := kubernetes.Create(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	if *job.Spec.Parallelism != 2 {
		t.Errorf("the webhook chose %d nodes: %v", *job.Spec.Parallelism, job.Annotations)
	}

	workload := &unstructured.Unstructured{}
	decode(t, `{apiVersion: kueue.x-k8s.io/v1beta2, kind: Workload, metadata: {namespace: running, name: first, ownerReferences: [{apiVersion: batch/v1, kind: Job, name: first, uid: `+string(job.UID)+`, controller: true}]},
		spec: {podSets: [{name: main, count: 2, template: {spec: {containers: [{name: trainer, image: training}]}}}]}}`, workload)
	if err := kubernetes.Create(t.Context(), workload); err != nil {
		t.Fatal(err)
	}
	status := map[string]any{}
	decode(t, `{conditions: [{type: QuotaReserved, status: "True", reason: QuotaReserved, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}],
		admission: {clusterQueue: any, podSetAssignments: [{name: main, count: 2}]},
		admissionChecks: [{name: running, state: Pending, message: "", lastTransitionTime: "2026-01-01T00:00:00Z", podSetUpdates: []}]}`, &status)
	workload.Object["status"] = status
	if err := kubernetes.Status().Update(t.Context(), workload); err != nil {
		t.Fatal(err)
	}
	found := ""
	if err := testcluster.Until(t.Context(), func(ctx context.Context) (bool, error) {
		if err := kubernetes.Get(ctx, client.ObjectKeyFromObject(workload), workload); err != nil {
			return false, err
		}
		found = fmt.Sprint(workload.Object["status"].(map[string]any)["admissionChecks"])
		return !strings.Contains(found, "Pending"), nil
	}); err != nil || !strings.Contains(found, "is worth its nodes; the recommendation is 2 nodes") {
		t.Error(found, err)
	}
}

// Without a webhook only an extender needs certificates; without both the release has another name, or comes later.
func TestCertificatesAreForARelease(t *testing.T) {
	_, kubernetes, _ := reach(t)
	for name, set := range map[string]string{"alone": "integrations.extender.enabled=true", "neither": "integrations.check.enabled=true"} {
		apply(t, kubernetes, objects(t, rendered(t, "helm", "template", name, deploy+"helm", "--namespace", namespace, "--set", set+",integrations.server=nodewise.example.org:443")))
		authority, err := certificates.Install(t.Context(), kubernetes, namespace, name, nil)
		if name == "alone" && (err != nil || len(authority) == 0) || name == "neither" && (err == nil || !strings.Contains(err.Error(), "install the webhook or the extender first")) {
			t.Error(name, ": ", err)
		}
	}
}

func decode(t *testing.T, text string, into any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), into); err != nil {
		t.Fatal(err)
	}
}
