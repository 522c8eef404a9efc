// Package e2e runs real programs: etcd, kube-apiserver, kube-scheduler, kube-controller-manager, Nodewise and this module's processes under the
// roles of deploy/, with Node objects instead of machines.
package e2e

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nodewise "github.com/nodewise/nodewise/clients/go"

	"github.com/nodewise/nodewise/integrations/kubernetes/internal/testcluster"
)

// rig holds all processes of this package's tests. They start once.
var rig struct {
	*testcluster.Cluster
	kubernetes client.Client
	nodewise   *nodewise.Client
	server     *exec.Cmd
	target     string
	program    string
	processes  map[string]*exec.Cmd
	listens    map[string]string
	authority  string // a file
	noModules  error
}

func TestMain(m *testing.M) {
	flag.Parse()
	status, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(status)
}

func run(m *testing.M) (int, error) {
	command := os.Getenv("NODEWISE_COMMAND")
	if command == "" {
		command = "nodewise"
	}
	if _, err := exec.LookPath(command); err != nil {
		fmt.Println("skipped: there is no Nodewise server here; NODEWISE_COMMAND is not the absolute path of one, and nodewise is not on the PATH")
		return 0, nil
	}
	if _, err := testcluster.Program(); err != nil {
		fmt.Println("skipped:", err)
		return 0, nil
	}
	cluster, err := testcluster.Start()
	if err != nil {
		return 1, err
	}
	defer cluster.Stop()
	rig.Cluster, rig.processes, rig.listens = cluster, map[string]*exec.Cmd{}, map[string]string{}
	defer func() {
		for _, process := range rig.processes {
			end(process)
		}
	}()
	if err := start(context.Background(), command); err != nil {
		return 1, err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go kubelets(ctx)
	defer func() {
		signalServer(syscall.SIGKILL)
		end(rig.server)
	}()
	return m.Run(), nil
}

func start(ctx context.Context, command string) error {
	var err error
	rig.Config.WarningHandler = rest.NoWarnings{} // the webhook's are in the reasons, which tests read
	if rig.kubernetes, err = client.New(rig.Config, client.Options{}); err != nil {
		return err
	}
	for _, module := range testcluster.Definitions {
		if err := rig.Install(module); err != nil {
			rig.noModules = err // their tests skip
		}
	}
	if err := serveNodewise(command); err != nil {
		return err
	}
	if rig.nodewise, err = nodewise.NewClient(rig.target); err != nil {
		return err
	}
	for _, file := range []string{"namespace", "webhook", "extender", "allocator", "collector", "check", "recommender"} {
		if err := apply(ctx, "../deploy/"+file+".yaml"); err != nil {
			return err
		}
	}
	rig.program = filepath.Join(filepath.Dir(rig.KubeConfig), "nodewise-kubernetes")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", rig.program, "../cmd/nodewise-kubernetes").CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w", out, err)
	}
	if err := certify(ctx); err != nil {
		return err
	}
	if err := reachWebhook(ctx); err != nil {
		return err
	}
	for _, name := range []string{"webhook", "extender"} {
		if err := startProcess(ctx, name); err != nil {
			return err
		}
	}
	run := "--controllers=job-controller"
	if builtControllers() != "" {
		run += ",garbage-collector-controller" // what operators' controllers create ends with its owner
	}
	if err := rig.Run("kube-controller-manager", "--leader-elect=false", "--secure-port=0", run); err != nil {
		return err
	}
	return startScheduler()
}

// certify creates the certificates of both processes with the command that users run.
func certify(ctx context.Context) error {
	made := exec.CommandContext(ctx, rig.program, "certificates", "-kubeconfig", rig.KubeConfig, "-hosts", "127.0.0.1")
	authority, err := made.Output()
	if err != nil {
		return fmt.Errorf("certificates: %w", err)
	}
	rig.authority = rig.Write("ca.crt", authority)
	secret := &corev1.Secret{}
	if err := rig.kubernetes.Get(ctx, types.NamespacedName{Namespace: "nodewise-system", Name: "nodewise-tls"}, secret); err != nil {
		return err
	}
	for name, content := range secret.Data {
		rig.Write(name, content)
	}
	return nil
}

// reachWebhook configures the address of the webhook, because the services of this cluster lead nowhere.
func reachWebhook(ctx context.Context) error {
	for _, name := range []string{"webhook", "extender"} {
		address, err := testcluster.FreeAddress()
		if err != nil {
			return err
		}
		rig.listens[name] = address
	}
	found := &admissionv1.MutatingWebhookConfiguration{}
	if err := rig.kubernetes.Get(ctx, types.NamespacedName{Name: "nodewise"}, found); err != nil {
		return err
	}
	url := "https://" + rig.listens["webhook"] + "/choose-nodes"
	found.Webhooks[0].ClientConfig.URL, found.Webhooks[0].ClientConfig.Service = &url, nil
	return rig.kubernetes.Update(ctx, found)
}

// startProcess starts one of this module's processes under its service account, and waits until it is ready.
func startProcess(ctx context.Context, name string, options ...string) error {
	user, err := rig.User("system:serviceaccount:nodewise-system:nodewise-" + name)
	if err != nil {
		return err
	}
	health, err := testcluster.FreeAddress()
	if err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(filepath.Dir(rig.KubeConfig), name+".log"))
	if err != nil {
		return err
	}
	defer log.Close()
	arguments := []string{name, "-kubeconfig", user, "-server", rig.target, "-metrics", "0", "-health", health}
	if rig.listens[name] != "" {
		arguments = append(arguments, "-listen", rig.listens[name], "-certificates", filepath.Dir(rig.KubeConfig))
	}
	if name != "extender" {
		arguments = append(arguments, "-leader-elect=false")
	} else {
		arguments = append(arguments, "-patience", "1500ms") // a busy machine is no reason to go without
	}
	process := exec.Command(rig.program, append(arguments, options...)...)
	process.Stdout, process.Stderr = log, log
	process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := process.Start(); err != nil {
		return err
	}
	rig.processes[name] = process
	err = testcluster.Until(ctx, func(context.Context) (bool, error) {
		reply, err := http.Get("http://" + health + "/readyz")
		if err != nil {
			return false, err
		}
		defer reply.Body.Close()
		text, _ := io.ReadAll(reply.Body)
		return reply.StatusCode == http.StatusOK, fmt.Errorf("%s", text)
	})
	if err != nil {
		return fmt.Errorf("%s is not ready: %w\n%s", name, err, rig.Log(name))
	}
	return nil
}

func startScheduler() error {
	text, err := os.ReadFile("../deploy/scheduler.yaml")
	if err != nil {
		return err
	}
	config := strings.NewReplacer(
		"/etc/kubernetes/scheduler.conf", rig.KubeConfig, "https://nodewise-extender.nodewise-system.svc", "https://"+rig.listens["extender"],
		"/etc/kubernetes/nodewise-ca.crt", rig.authority,
		"httpTimeout: 100ms", "httpTimeout: 2s", // as for the extender's patience
	).Replace(string(text)) + "leaderElection: {leaderElect: false}\n"
	if os.Getenv("NODEWISE_DAY") != "" { // small jobs beside each other, so that whole nodes stay free
		config += `profiles:
  - schedulerName: default-scheduler
    pluginConfig:
      - name: NodeResourcesFit
        args: {scoringStrategy: {type: MostAllocated, resources: [{name: nvidia.com/gpu, weight: 1}]}}
`
	}
	return rig.Run("kube-scheduler", "--config", rig.Write("scheduler.yaml", []byte(config)), "--secure-port=0")
}

// serveNodewise starts a server for the tests, which they may stop; its port stays the same.
func serveNodewise(command string) error {
	listen := rig.target
	if listen == "" {
		var err error
		if listen, err = testcluster.FreeAddress(); err != nil {
			return err
		}
	}
	process := exec.Command(command, "serve", "--listen", listen, "--http", "off", "--store", "sqlite:"+filepath.Join(filepath.Dir(rig.KubeConfig), "nodewise.db")) // #nosec G204 -- the user's own
	out, err := process.StdoutPipe()
	if err != nil {
		return err
	}
	if err := process.Start(); err != nil {
		return err
	}
	rig.server = process
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if target, found := strings.CutPrefix(lines.Text(), "listening on "); found {
			rig.target = target
			return nil
		}
	}
	return fmt.Errorf("%s serve did not start: %w", command, process.Wait())
}

func end(process *exec.Cmd) {
	if process != nil && process.Process != nil {
		_ = process.Process.Kill()
		_ = process.Wait()
	}
}

// signalServer signals Nodewise's supervisor and all its children.
func signalServer(signal syscall.Signal) {
	for _, process := range family(rig.server.Process.Pid) {
		_ = syscall.Kill(process, signal)
	}
}

// pauseServer stops Nodewise's processes until the returned function is called, or the test ends.
func pauseServer(t *testing.T) (resume func()) {
	t.Helper()
	signalServer(syscall.SIGSTOP)
	resume = sync.OnceFunc(func() { signalServer(syscall.SIGCONT) })
	t.Cleanup(resume)
	return resume
}

func family(process int) []int {
	all := []int{process}
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", process, process))
	for child := range strings.FieldsSeq(string(text)) {
		if number, err := strconv.Atoi(child); err == nil {
			all = append(all, family(number)...)
		}
	}
	return all
}

// apply creates the objects of a manifest.
func apply(ctx context.Context, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	documents := yaml.NewYAMLOrJSONDecoder(file, 4096)
	for {
		object := &unstructured.Unstructured{}
		if err := documents.Decode(object); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if len(object.Object) == 0 {
			continue
		}
		if err := rig.kubernetes.Create(ctx, object); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
}
