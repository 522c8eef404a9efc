package e2e

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/nodewise/nodewise/integrations/kubernetes/internal/certificates"
	"github.com/nodewise/nodewise/integrations/kubernetes/internal/testcluster"
)

// controller is an operator's own program, built by controllers/build, with its own manifests, service account, and rotation of certificates.
type controller struct {
	program, module, path string // path is the Go module with the manifests; module is the one that pins it
	manifests             []string
	namespace, account    string
	secret                string // of its certificates; empty = it has no webhook
	issued                bool   // cert-manager issues its certificates; here install does
	port                  string // of its webhook, if it is fixed
	arguments             []string
	environment           []string
	config                string // a file, where the arguments name one
}

// HEALTH, PORT, STATUS and CONFIG in arguments and configuration stand for addresses and a file of the test.
var controllers = []controller{
	{
		program: "jobset", module: "jobset", path: "sigs.k8s.io/jobset", manifests: []string{"config/default"},
		namespace: "jobset-system", account: "jobset-controller-manager", secret: "jobset-webhook-server-cert",
		arguments: []string{"--config=CONFIG", "--metrics-bind-address=0", "--health-probe-bind-address=HEALTH"},
		config: `{apiVersion: config.jobset.x-k8s.io/v1alpha1, kind: Configuration, leaderElection: {leaderElect: false},
			internalCertManagement: {enable: true}, webhook: {host: 127.0.0.1, port: PORT}}`,
	},
	{
		program: "trainer-controller-manager", module: "kueue", path: "github.com/kubeflow/trainer/v2",
		manifests: []string{"manifests/base/crds", "manifests/base/rbac", "manifests/base/webhook"},
		namespace: "kubeflow-system", account: "kubeflow-trainer-controller-manager", secret: "kubeflow-trainer-webhook-cert",
		arguments: []string{"--config=CONFIG"},
		config: `{apiVersion: config.trainer.kubeflow.org/v1alpha1, kind: Configuration, leaderElection: {leaderElect: false},
			featureGates: {TrainJobStatus: true}, statusServer: {port: STATUS},
			health: {healthProbeBindAddress: "HEALTH"}, metrics: {bindAddress: "0"}, webhook: {host: 127.0.0.1, port: PORT},
			certManagement: {enable: true, webhookServiceName: kubeflow-trainer-controller-manager, webhookSecretName: kubeflow-trainer-webhook-cert}}`,
	},
	{
		program: "training-operator.v1", module: "jobset", path: "github.com/kubeflow/training-operator", manifests: []string{"manifests/overlays/standalone"},
		namespace: "kubeflow", account: "training-operator", secret: "training-operator-webhook-cert",
		arguments: []string{"--metrics-bind-address=0", "--health-probe-bind-address=HEALTH", "--webhook-server-port=PORT", "--enable-scheme=pytorchjob"},
	},
	{
		program: "ray-operator", module: "jobset", path: "github.com/ray-project/kuberay/ray-operator", manifests: []string{"config/default-with-webhooks"},
		namespace: "ray-system", account: "kuberay-operator", secret: "webhook-server-cert", issued: true, port: "9443", environment: []string{"ENABLE_WEBHOOKS=true"},
		arguments: []string{"--metrics-addr=0", "--enable-leader-election=false", "--health-probe-bind-address=HEALTH", "--use-kubernetes-proxy=true"},
	},
	{
		program: "kueue", module: "kueue", path: "sigs.k8s.io/kueue", manifests: []string{"config/default"},
		namespace: "kueue-system", account: "kueue-controller-manager", secret: "kueue-webhook-server-cert",
		arguments: []string{"--config=CONFIG", "--feature-gates=VisibilityOnDemand=false,ElasticJobsViaWorkloadSlices=true"},
		config: `{apiVersion: config.kueue.x-k8s.io/v1beta2, kind: Configuration, namespace: kueue-system, leaderElection: {leaderElect: false},
			health: {healthProbeBindAddress: "HEALTH"}, metrics: {bindAddress: "0"}, webhook: {host: 127.0.0.1, port: PORT},
			internalCertManagement: {enable: true, webhookServiceName: kueue-webhook-service, webhookSecretName: kueue-webhook-server-cert},
			integrations: {frameworks: [batch/job, jobset.x-k8s.io/jobset, trainer.kubeflow.org/trainjob, kubeflow.org/pytorchjob, ray.io/rayjob, ray.io/raycluster]}}`,
	},
}

// builtControllers returns the folder of the programs; empty = they are not built here.
func builtControllers() string {
	out, err := exec.Command("../controllers/build", "--folder").Output()
	folder := strings.TrimSpace(string(out))
	if _, missing := os.Stat(folder); err != nil || missing != nil {
		return ""
	}
	return folder
}

// startControllers installs the operators' manifests and starts their programs until the test ends: those named, else all.
func startControllers(t *testing.T, named ...string) {
	t.Helper()
	folder := builtControllers()
	if folder == "" {
		t.Skip("the operators' controllers are not built here; integrations/kubernetes/controllers/build builds them")
	}
	if err := exec.Command("unshare", unshared("true")...).Run(); err != nil {
		t.Skip("controllers read their certificates at a fixed path, and this user may not mount a folder there: ", err)
	}
	if err := os.MkdirAll(certificatesAt, 0o755); err != nil {
		t.Fatal(err)
	}
	rig.listens["status"] = free(t)
	var started sync.WaitGroup
	for _, each := range controllers {
		if len(named) > 0 && !slices.Contains(named, each.program) {
			continue
		}
		address, health := free(t), free(t)
		if each.port != "" && unused(each.port) {
			address = "127.0.0.1:" + each.port
		} else if each.port != "" {
			t.Log(each.program, " runs without its webhook: port ", each.port, ", which it cannot change, is in use")
			each.secret, each.environment = "", nil
		}
		each.install(t, address)
		started.Go(func() { each.start(t, filepath.Join(folder, each.program), address, health) })
	}
	started.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

// tokensAt is where pods have the token of their service account.
const tokensAt = "/run/secrets/kubernetes.io/serviceaccount"

// tokenOf returns a token of a service account, for the audiences or else the API server.
func tokenOf(ctx context.Context, namespace, account string, audiences ...string) (string, error) {
	wanted := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: audiences}}
	owner := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}}
	err := rig.kubernetes.SubResource("token").Create(ctx, owner, wanted)
	return wanted.Status.Token, err
}

// certificatesAt is where controllers read their certificates. Each of them sees a folder of its own there.
const certificatesAt = "/tmp/k8s-webhook-server/serving-certs"

func unshared(command string, arguments ...string) []string {
	options := []string{"--mount"}
	if os.Geteuid() != 0 {
		options = append(options, "--map-root-user")
	}
	return append(append(options, command), arguments...)
}

func free(t *testing.T) string {
	t.Helper()
	address, err := testcluster.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// unused reports whether nothing listens on a port.
func unused(port string) bool {
	listener, err := net.Listen("tcp", ":"+port)
	if err != nil {
		return false
	}
	return listener.Close() == nil
}

// install applies the manifests except for what needs machines: Deployments. Services lead to the port of the program.
func (c *controller) install(t *testing.T, address string) {
	t.Helper()
	_, port, _ := net.SplitHostPort(address)
	out, err := exec.Command("go", "list", "-C", "../controllers/"+c.module, "-m", "-f", "{{.Dir}}", c.path).Output() // #nosec G204 -- stated here
	if err != nil {
		t.Skip(c.path, " cannot be downloaded: ", err)
	}
	var text bytes.Buffer
	for _, each := range c.manifests {
		built, err := exec.Command("go", "tool", "-modfile=../tools/go.mod", "kustomize", "build", filepath.Join(strings.TrimSpace(string(out)), each)).Output() // #nosec G204 -- stated here
		if err != nil {
			t.Fatal(each, ": ", err)
		}
		text.WriteString("---\n")
		text.Write(built)
	}
	apply := func(object *unstructured.Unstructured) {
		var last error
		err := testcluster.Until(t.Context(), func(ctx context.Context) (bool, error) { // a busy API server may time out
			last = rig.kubernetes.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("tests"), client.ForceOwnership)
			return last == nil || !apierrors.IsTimeout(last) && !apierrors.IsServerTimeout(last), nil
		})
		if err = cmp.Or(err, last); err != nil {
			t.Fatal(c.program, ": ", object.GetKind(), " ", object.GetName(), ": ", err)
		}
	}
	apply(read(t, `{apiVersion: v1, kind: Namespace, metadata: {name: `+c.namespace+`}}`))
	apply(read(t, `{apiVersion: v1, kind: ServiceAccount, metadata: {name: `+c.account+`, namespace: `+c.namespace+`}}`))
	if c.secret != "" && !c.issued {
		apply(read(t, `{apiVersion: v1, kind: Secret, metadata: {name: `+c.secret+`, namespace: `+c.namespace+`}}`))
	}
	services := map[string]bool{}
	documents := yaml.NewYAMLOrJSONDecoder(&text, 4096)
	for {
		object := &unstructured.Unstructured{}
		if err := documents.Decode(object); err == io.EOF {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		if object.GetName() == "mpijobs.kubeflow.org" {
			continue // its newer operator's definition is installed
		}
		var settings []map[string]any
		switch object.GetKind() {
		case "", "Deployment", "Service", "APIService", "Secret", "ServiceAccount", "Certificate", "Issuer":
			continue
		case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
			if c.secret == "" {
				continue
			}
			webhooks := slices.DeleteFunc(object.Object["webhooks"].([]any), func(each any) bool {
				return slices.Contains(unserved, at(each, "name").(string))
			})
			object.Object["webhooks"] = webhooks
			for _, each := range webhooks {
				settings = append(settings, at(each, "clientConfig.service").(map[string]any))
			}
			if c.issued {
				c.issue(t, webhooks)
			}
			t.Cleanup(func() { _ = rig.kubernetes.Delete(context.WithoutCancel(t.Context()), object) })
		case "CustomResourceDefinition":
			if conversion, _, _ := unstructured.NestedString(object.Object, "spec", "conversion", "strategy"); conversion == "Webhook" {
				settings = append(settings, at(object.Object, "spec.conversion.webhook.clientConfig.service").(map[string]any))
			}
		case "ClusterRoleBinding", "RoleBinding":
			subjects, _ := object.Object["subjects"].([]any)
			for _, each := range subjects {
				each.(map[string]any)["namespace"] = c.namespace
			}
		}
		if strings.HasSuffix(object.GetKind(), "Role") || strings.HasSuffix(object.GetKind(), "RoleBinding") || object.GetKind() == "ConfigMap" {
			if !strings.HasPrefix(object.GetKind(), "Cluster") && object.GetNamespace() == "" {
				object.SetNamespace(c.namespace)
			}
		}
		for _, service := range settings {
			name := service["name"].(string)
			service["namespace"], service["port"] = c.namespace, number(t, port)
			if !services[name] {
				services[name] = true
				apply(read(t, `{apiVersion: v1, kind: Service, metadata: {name: `+name+`, namespace: `+c.namespace+`}, spec: {type: ExternalName, externalName: localhost}}`))
			}
		}
		apply(object)
		if object.GetKind() == "CustomResourceDefinition" {
			served(t, object)
		}
	}
}

// unserved are webhooks of KubeRay's manifests that its operator does not serve up to 1.6 (kuberay#4789); they would refuse every RayJob.
var unserved = []string{"vrayjob.kb.io", "vrayservice.kb.io"}

// issue does what cert-manager does: it creates the secret of the certificate, and lets the API server trust it.
func (c *controller) issue(t *testing.T, webhooks []any) {
	t.Helper()
	name := at(webhooks[0], "clientConfig.service.name").(string) + "." + c.namespace + ".svc"
	authority, certificate, key, err := certificates.Make([]string{name})
	if err != nil {
		t.Fatal(err)
	}
	for _, each := range webhooks {
		at(each, "clientConfig").(map[string]any)["caBundle"] = base64.StdEncoding.EncodeToString(authority)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: c.secret, Namespace: c.namespace}}
	if _, err := controllerutil.CreateOrUpdate(t.Context(), rig.kubernetes, secret, func() error {
		secret.Data = map[string][]byte{corev1.TLSCertKey: certificate, corev1.TLSPrivateKeyKey: key}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// served waits until the API server serves a kind; a controller that starts before ends.
func served(t *testing.T, definition *unstructured.Unstructured) {
	t.Helper()
	of := func(path string) string { return at(definition.Object, "spec."+path).(string) }
	all := &unstructured.UnstructuredList{}
	all.SetGroupVersionKind(schema.GroupVersionKind{Group: of("group"), Version: of("versions.0.name"), Kind: of("names.kind")})
	if err := testcluster.Until(t.Context(), func(ctx context.Context) (bool, error) {
		err := rig.kubernetes.List(ctx, all, client.Limit(1))
		return err == nil || !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err), err
	}); err != nil {
		t.Fatal(definition.GetName(), ": ", err)
	}
}

func number(t *testing.T, text string) (found int64) {
	t.Helper()
	if _, err := fmt.Sscan(text, &found); err != nil {
		t.Fatal(err)
	}
	return found
}

// start runs the program under its service account, mounts its secret as a kubelet would, and waits until it is ready.
func (c *controller) start(t *testing.T, program, address, health string) {
	user, err := rig.User("system:serviceaccount:"+c.namespace+":"+c.account, "system:serviceaccounts")
	if err != nil {
		t.Error(err)
		return
	}
	_, port, _ := net.SplitHostPort(address)
	_, statusPort, _ := net.SplitHostPort(rig.listens["status"])
	token, err := tokenOf(t.Context(), c.namespace, c.account)
	if err != nil {
		t.Error(err)
		return
	}
	mounted, config := rig.Write(c.program+".certificates", nil)+".d", ""
	if err := os.MkdirAll(mounted, 0o700); err != nil {
		t.Error(err)
		return
	}
	filled := strings.NewReplacer("HEALTH", health, "PORT", port, "STATUS", statusPort)
	if c.config != "" {
		text, err := sigsyaml.YAMLToJSON([]byte(filled.Replace(c.config)))
		if err != nil {
			t.Error(err)
			return
		}
		config = rig.Write(c.program+".json", text)
	}
	// The Trainer's server of statuses reads the issuer of tokens from its own.
	arguments := []string{
		"-c", `mount --bind "$0" ` + certificatesAt + ` && mount -t tmpfs tmpfs /run && mkdir -p ` + tokensAt + ` && cp "$1" ` + tokensAt + `/token && shift && exec "$@"`,
		mounted, rig.Write(c.program+".token", []byte(token)), program, "--kubeconfig=" + user,
	}
	for _, each := range c.arguments {
		arguments = append(arguments, strings.ReplaceAll(filled.Replace(each), "CONFIG", config))
	}
	log, err := os.Create(filepath.Join(filepath.Dir(rig.KubeConfig), c.program+".log"))
	if err != nil {
		t.Error(err)
		return
	}
	defer log.Close()
	process := exec.Command("unshare", unshared("sh", arguments...)...) // #nosec G204 -- built by us
	process.Stdout, process.Stderr, process.Env = log, log, append(os.Environ(), c.environment...)
	process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err = c.mount(t.Context(), mounted); err == nil {
		err = process.Start()
	}
	if err != nil {
		t.Error(err)
		return
	}
	ended := make(chan error, 1)
	go func() { ended <- process.Wait(); close(ended) }()
	t.Cleanup(func() {
		_ = process.Process.Kill()
		for range ended { // its port is free afterwards
		}
	})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	err = testcluster.Until(ctx, func(ctx context.Context) (bool, error) {
		select {
		case err := <-ended:
			stop()
			return false, err
		default:
		}
		if err := c.mount(ctx, mounted); err != nil {
			return false, err
		}
		reply, err := http.Get("http://" + health + "/readyz")
		if err != nil {
			return false, err
		}
		defer reply.Body.Close()
		if c.issued && c.secret != "" { // KubeRay is ready before its webhook is
			connection, err := net.Dial("tcp", address)
			if err != nil {
				return false, err
			}
			_ = connection.Close()
		}
		return reply.StatusCode == http.StatusOK, nil
	})
	if err != nil {
		t.Errorf("%s is not ready: %v\n%s", c.program, err, lastLines(rig.Log(c.program), 20))
	}
}

func (c *controller) mount(ctx context.Context, folder string) error {
	secret := &corev1.Secret{}
	if err := rig.kubernetes.Get(ctx, types.NamespacedName{Namespace: c.namespace, Name: c.secret}, secret); c.secret == "" || apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return err
	}
	for name, content := range secret.Data {
		path := filepath.Join(folder, name)
		if before, err := os.ReadFile(path); err == nil && bytes.Equal(before, content) {
			continue
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func lastLines(text string, count int) string {
	lines := strings.Split(text, "\n")
	return strings.Join(lines[max(len(lines)-count, 0):], "\n")
}
