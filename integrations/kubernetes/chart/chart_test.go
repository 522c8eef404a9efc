// Package chart checks deploy/ at the repository's root with Helm, Kustomize and a real API server. There is no kubelet, so no pod starts.
package chart

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodewise/nodewise/integrations/kubernetes/internal/testcluster"
)

const (
	deploy    = "../../../deploy/"
	namespace = "nodewise-system"
)

var write = flag.Bool("write", false, "write the manifests that are rendered from the chart")

func TestMain(m *testing.M) {
	if out, err := exec.Command("go", "list", "-C", "../tools", "-deps", "tool").CombinedOutput(); err != nil {
		fmt.Printf("skipped: Helm and Kustomize cannot be had here: %s\n", bytes.TrimSpace(out))
		return
	}
	status := m.Run()
	if started {
		if c, err := cluster(); err == nil {
			c.Stop()
		}
	}
	os.Exit(status)
}

// built returns a function that builds one of the tools of ../tools, once, and returns its path.
func built(tool string) func() (string, error) {
	return sync.OnceValues(func() (string, error) {
		path, err := exec.Command("go", "tool", "-modfile=../tools/go.mod", "-n", tool).Output() // #nosec G204 -- stated here
		return strings.TrimSpace(string(path)), err
	})
}

var tools = map[string]func() (string, error){"helm": built("helm"), "kustomize": built("kustomize")}

// run runs one of the tools.
func run(t *testing.T, tool string, arguments ...string) (string, error) {
	t.Helper()
	path, err := tools[tool]()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), path, arguments...) // #nosec G204 -- built from ../tools
	var out, errors bytes.Buffer
	command.Stdout, command.Stderr = &out, &errors
	command.Env = os.Environ()
	for _, name := range []string{"HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"} { // not the user's repositories and plugins
		command.Env = append(command.Env, name+"="+t.TempDir())
	}
	err = command.Run()
	return out.String(), joined(err, errors.String())
}

func joined(err error, said string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %s", err, said)
}

func rendered(t *testing.T, tool string, arguments ...string) string {
	t.Helper()
	out, err := run(t, tool, arguments...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func chart(t *testing.T, options ...string) string {
	t.Helper()
	return rendered(t, "helm", append([]string{"template", "nodewise", deploy + "helm"}, options...)...)
}

func TestManifestsAreTheChartsRendering(t *testing.T) {
	manifests := map[string]string{
		deploy + "kustomize/base/nodewise.yaml": chart(t),
		"../deploy/configuration.yaml":          renderManifest(t, "check", "integrations-configuration"),
		"../deploy/webhook.yaml":                renderManifest(t, "webhook", "integrations", "webhook"),
	}
	for _, process := range []string{"allocator", "check", "collector", "extender", "recommender"} {
		manifests["../deploy/"+process+".yaml"] = renderManifest(t, process, "integrations")
	}
	for path, want := range manifests {
		if *write {
			if err := os.WriteFile(path, []byte(want), 0o644); err != nil { // #nosec G306 -- a manifest
				t.Fatal(err)
			}
		}
		if text, err := os.ReadFile(path); err != nil || string(text) != want {
			t.Errorf("%s is not what the chart renders (%v); go test ./chart -write writes it", path, err)
		}
	}
}

func TestAValueThatIsNoneIsRefused(t *testing.T) {
	for _, each := range []struct{ set, says string }{
		{"replica.min=3", "replica"},
		{"replicas.min=0", "minimum"},
		{"tlsSecret=", "tlsSecret"},
		{"settings.listen=0.0.0.0:1", "listen"},
		{"settings.tls.certificate=/tls.pem", "certificate"},
		{"settings.grace_s=long", "grace_s"},
		{"networkPolicy.egressPorts[0]=70000", "maximum"},
		{"monitoring.queue=-1", "minimum"},
		{"integrations.checks.enabled=true", "checks"},
		{"integrations.check.replicas=0", "/integrations/check/replicas"},
		{"integrations.check.resources.requests=null", "/integrations/check/resources"},
		{"integrations.check.admissionCheck=Not_A_Name", "/integrations/check/admissionCheck"},
		{"integrations.collector.admissionCheck=nodewise", "/integrations/collector/admissionCheck"},
		{"integrations.webhook.failurePolicy=ignore", "/integrations/webhook/failurePolicy"},
		{"integrations.allocator.arguments={dry-run}", "/integrations/allocator/arguments/0"},
		{"integrations.extender.environment.GOGC=200", "/integrations/extender/environment/GOGC"},
		{"integrations.environment.NODEWISE_TOKEN=secret", "/integrations/environment/NODEWISE_TOKEN"},
		{"integrations.webhook.environment.NODEWISE-TOKEN=secret", "/integrations/webhook/environment"},
		{"integrations.certificateIssuer.kind=ClusterIssuer", "/integrations/certificateIssuer"},
		{"integrations.server=nodewise.example.org", "/integrations/server"},
		{"integrations.server=https://nodewise.example.org:443", "/integrations/server"},
		{"integrations.server=nodewise.example.org:50551", "integrations.server names a server elsewhere, but no process is enabled"},
	} {
		_, err := run(t, "helm", "template", "nodewise", deploy+"helm", "--set", each.set)
		if err == nil || !strings.Contains(err.Error(), each.says) {
			t.Errorf("--set %s: %v", each.set, err)
		}
	}
}

func TestAStopHasTheTimeThatItsSettingsTake(t *testing.T) {
	text := chart(t, "--set-json", `settings={"drain_delay_s": 2.5, "grace_s": 100}`)
	if !strings.Contains(text, "terminationGracePeriodSeconds: 113\n") {
		t.Error(text)
	}
}

func TestNobodyIsAskedForACertificateThatTheKubeletLacks(t *testing.T) {
	text := chart(t, "--set", "settings.tls.client_authorities=/etc/nodewise/tls/ca.crt")
	if strings.Contains(text, "httpGet") || strings.Count(text, "tcpSocket: {port: http}") != 3 {
		t.Error(text)
	}
}

func TestMonitoringHasTheServiceAndTheAlerts(t *testing.T) {
	file, err := os.ReadFile(deploy + "prometheus/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{}
	if err := yaml.Unmarshal(file, &want); err != nil {
		t.Fatal(err)
	}
	found := map[string]map[string]any{}
	for _, object := range objects(t, chart(t, "--set", "monitoring.enabled=true", "--namespace", namespace)) {
		found[object.GetKind()], _, _ = unstructured.NestedMap(object.Object, "spec")
	}
	if !reflect.DeepEqual(found["PrometheusRule"], want) {
		t.Errorf("the rules are not those of the file: %v", found["PrometheusRule"])
	}
	endpoints, _, err := unstructured.NestedSlice(found["ServiceMonitor"], "endpoints")
	if err != nil || len(endpoints) != 1 {
		t.Fatal(endpoints, err)
	}
	endpoint := endpoints[0].(map[string]any)
	tls := endpoint["tlsConfig"].(map[string]any)
	if endpoint["port"] != "http" || tls["serverName"] != "nodewise.nodewise-system.svc" || tls["ca"] == nil {
		t.Errorf("%v", endpoint)
	}
}

// cluster is started by the first test that needs it.
var cluster = sync.OnceValues(func() (*testcluster.Cluster, error) {
	started = true
	return testcluster.Start()
})

var started bool

// warnings collects the warnings of the API server.
type warnings struct{ said []string }

func (w *warnings) HandleWarningHeader(_ int, _ string, text string) { w.said = append(w.said, text) }

// reach returns a client of the cluster, with a namespace that admits only restricted pods.
func reach(t *testing.T) (*testcluster.Cluster, client.Client, *warnings) {
	t.Helper()
	if _, err := testcluster.Program(); err != nil {
		t.Skip("skipped:", err)
	}
	running, err := cluster()
	if err != nil {
		t.Fatal(err)
	}
	said := &warnings{}
	config := *running.Config
	config.WarningHandler = said
	kubernetes, err := client.New(&config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	restricted := map[string]string{"pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/warn": "restricted"}
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: restricted}}
	if err := client.IgnoreAlreadyExists(kubernetes.Create(t.Context(), space)); err != nil {
		t.Fatal(err)
	}
	return running, kubernetes, said
}

// objects returns the objects of a manifest.
func objects(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	all := []*unstructured.Unstructured{}
	documents := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	for {
		object := &unstructured.Unstructured{}
		if err := documents.Decode(object); err == io.EOF {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		if len(object.Object) > 0 {
			all = append(all, object)
		}
	}
}

// apply lets the API server validate each object, which refuses unknown fields, and then stores it. Objects without a namespace get the test's.
func apply(t *testing.T, kubernetes client.Client, all []*unstructured.Unstructured) {
	t.Helper()
	for _, options := range [][]client.ApplyOption{{client.DryRunAll}, {}} {
		options = append(options, client.FieldOwner("tests"), client.ForceOwnership)
		for _, object := range all {
			copied := object.DeepCopy()
			if namespaced, err := kubernetes.IsObjectNamespaced(copied); err != nil {
				t.Fatal(err)
			} else if namespaced && copied.GetNamespace() == "" {
				copied.SetNamespace(namespace)
			}
			if err := kubernetes.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(copied), options...); err != nil {
				t.Errorf("%s %s: %v", object.GetKind(), object.GetName(), err)
			}
		}
	}
}

func TestTheAPIServerTakesWhatIsRendered(t *testing.T) {
	_, kubernetes, said := reach(t)
	for name, text := range map[string]string{
		"chart":      chart(t),
		"queue":      chart(t, "--set", "monitoring.queue=20"),
		"mutual TLS": chart(t, "--set", "settings.tls.client_authorities=/etc/nodewise/tls/ca.crt"),
		"base":       rendered(t, "kustomize", "build", deploy+"kustomize/base"),
	} {
		t.Run(name, func(t *testing.T) {
			all := objects(t, text)
			kinds := []string{}
			for _, object := range all {
				kinds = append(kinds, object.GetKind())
			}
			slices.Sort(kinds)
			if want := "ConfigMap Deployment HorizontalPodAutoscaler NetworkPolicy PodDisruptionBudget Service Service"; strings.Join(kinds, " ") != want {
				t.Errorf("kinds: %s", kinds)
			}
			apply(t, kubernetes, all)
			if len(said.said) > 0 {
				t.Errorf("the API server warns: %s", said.said)
			}
			admitsPods(t, kubernetes, all)
		})
	}
}

// admitsPods creates pods as the controllers of the Deployments would; the namespace refuses pods that are not restricted.
func admitsPods(t *testing.T, kubernetes client.Client, all []*unstructured.Unstructured) {
	t.Helper()
	for _, object := range all {
		if object.GetKind() != "Deployment" {
			continue
		}
		deployment := &appsv1.Deployment{}
		if err := kubernetes.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: object.GetName()}, deployment); err != nil {
			t.Fatal(err)
		}
		pod := &corev1.Pod{ObjectMeta: deployment.Spec.Template.ObjectMeta, Spec: deployment.Spec.Template.Spec}
		pod.Namespace, pod.GenerateName = namespace, "nodewise-"
		if err := kubernetes.Create(t.Context(), pod, client.DryRunAll); err != nil {
			t.Error(err)
		}
	}
}

func TestEveryServiceAndPolicyLeadsToThePods(t *testing.T) {
	labels := map[string]string{}
	ports := []string{}
	selectors := []map[string]string{}
	for _, object := range objects(t, chart(t)) {
		if object.GetKind() == "Deployment" {
			deployment := &appsv1.Deployment{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, deployment); err != nil {
				t.Fatal(err)
			}
			labels = deployment.Spec.Template.Labels
			for _, port := range deployment.Spec.Template.Spec.Containers[0].Ports {
				ports = append(ports, port.Name)
			}
		}
		for _, path := range [][]string{{"spec", "selector"}, {"spec", "selector", "matchLabels"}, {"spec", "podSelector", "matchLabels"}} {
			if selector, found, err := unstructured.NestedStringMap(object.Object, path...); found && err == nil {
				selectors = append(selectors, selector)
			}
		}
	}
	if len(selectors) != 5 || !slices.Equal(ports, []string{"grpc", "http"}) {
		t.Fatal(selectors, ports)
	}
	for _, selector := range selectors {
		for name, value := range selector {
			if labels[name] != value {
				t.Errorf("%s=%s is no label of the pods", name, value)
			}
		}
	}
}

func TestTheIntegrationsStandBeside(t *testing.T) {
	_, kubernetes, _ := reach(t)
	all := objects(t, rendered(t, "kustomize", "build", deploy+"kustomize/with-integrations"))
	names := map[string]bool{}
	for _, object := range all {
		names[object.GetKind()+" "+object.GetName()] = true
	}
	for _, name := range []string{"Deployment nodewise", "Deployment nodewise-webhook", "Deployment nodewise-extender", "Deployment nodewise-check", "Deployment nodewise-recommender", "Namespace " + namespace} {
		if !names[name] {
			t.Errorf("there is no %s", name)
		}
	}
	apply(t, kubernetes, all)
}

func TestHelmInstallsAndUpgrades(t *testing.T) {
	running, kubernetes, _ := reach(t)
	command := []string{"upgrade", "--install", "trial", deploy + "helm", "--namespace", "trial", "--create-namespace", "--kubeconfig", running.KubeConfig}
	for _, image := range []string{"nodewise:0.1.0", "nodewise:0.2.0"} {
		rendered(t, "helm", append(command, "--set", "image="+image)...)
		deployment := &appsv1.Deployment{}
		if err := kubernetes.Get(t.Context(), types.NamespacedName{Namespace: "trial", Name: "trial"}, deployment); err != nil {
			t.Fatal(err)
		}
		if found := deployment.Spec.Template.Spec.Containers[0].Image; found != image {
			t.Errorf("%s runs, not %s", found, image)
		}
	}
	rendered(t, "helm", "uninstall", "trial", "--namespace", "trial", "--kubeconfig", running.KubeConfig)
	if err := kubernetes.Get(context.WithoutCancel(t.Context()), types.NamespacedName{Namespace: "trial", Name: "trial"}, &appsv1.Deployment{}); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("it is still there: %v", err)
	}
}
