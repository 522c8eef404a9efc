// Package testcluster starts a real Kubernetes control plane for tests: etcd, kube-apiserver, kube-controller-manager and kube-scheduler, built
// by cluster/build, with Node objects instead of machines.
package testcluster

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// Cluster is a running control plane.
type Cluster struct {
	// Config is the configuration of an administrator.
	Config *rest.Config
	// KubeConfig is the same configuration as a file.
	KubeConfig  string
	environment *envtest.Environment
	folder      string
	programs    []*exec.Cmd
}

// Program returns the path of the control plane's program; the error says how to build it.
func Program() (string, error) {
	found, err := filepath.Glob(filepath.Join(gopath(), "bin", "nodewise-kubernetes-cluster-*"))
	if err != nil || len(found) == 0 {
		return "", fmt.Errorf("there is no Kubernetes control plane here; integrations/kubernetes/cluster/build builds one")
	}
	slices.Sort(found)
	return found[len(found)-1], nil
}

func gopath() string {
	out, err := exec.Command("go", "env", "GOPATH").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// Start starts etcd and kube-apiserver.
func Start() (*Cluster, error) {
	program, err := Program()
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "nodewise-kubernetes-")
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		if err := os.Symlink(program, filepath.Join(folder, name)); err != nil {
			return nil, err
		}
	}
	c := &Cluster{folder: folder, environment: &envtest.Environment{
		BinaryAssetsDirectory: folder, ControlPlaneStartTimeout: 3 * time.Minute, ControlPlaneStopTimeout: time.Minute,
	}}
	// Otherwise it states a name of the machine as the place of its keys, where it does not listen.
	c.environment.ControlPlane.GetAPIServer().Configure().Set("external-hostname", "127.0.0.1")
	if c.Config, err = c.environment.Start(); err != nil {
		c.Stop()
		return nil, err
	}
	c.Config.QPS, c.Config.Burst = 1000, 1000 // no throttling in tests
	c.Config.Host = strings.TrimSuffix(c.Config.Host, "/")
	c.KubeConfig, err = c.User("tests", "system:masters")
	return c, err
}

// User returns a configuration file for a user; a service account is system:serviceaccount:NAMESPACE:NAME.
func (c *Cluster) User(name string, groups ...string) (string, error) {
	user, err := c.environment.AddUser(envtest.User{Name: name, Groups: groups}, c.Config)
	if err != nil {
		return "", err
	}
	text, err := user.KubeConfig()
	if err != nil {
		return "", err
	}
	return c.Write(strings.ReplaceAll(name, ":", "-")+".kubeconfig", text), nil
}

// Write creates a file that is removed with the cluster.
func (c *Cluster) Write(name string, text []byte) string {
	path := filepath.Join(c.folder, name)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		panic(err)
	}
	return path
}

// Run starts one of the control plane's programs; its log is the file NAME.log of the cluster's folder.
func (c *Cluster) Run(name string, arguments ...string) error {
	log, err := os.Create(filepath.Join(c.folder, name+".log"))
	if err != nil {
		return err
	}
	defer log.Close()
	program := exec.Command(filepath.Join(c.folder, name), append([]string{"--kubeconfig", c.KubeConfig}, arguments...)...) // #nosec G204 -- built by us
	program.Stdout, program.Stderr = log, log
	program.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := program.Start(); err != nil {
		return err
	}
	c.programs = append(c.programs, program)
	return nil
}

// Log returns the log of one of the programs.
func (c *Cluster) Log(name string) string {
	text, _ := os.ReadFile(filepath.Join(c.folder, name+".log"))
	return string(text)
}

// Install installs the published definition of a kind, from the folder of a Go module.
func (c *Cluster) Install(module Module) error {
	folder, err := module.Folder()
	if err != nil {
		return err
	}
	_, err = envtest.InstallCRDs(c.Config, envtest.CRDInstallOptions{Paths: []string{filepath.Join(folder, module.Definition)}, MaxTime: time.Minute})
	return err
}

// Folder returns where a module's files are, and downloads missing ones.
func (m Module) Folder() (string, error) {
	out, err := exec.Command("go", "mod", "download", "-json", m.Path+"@"+m.Version).Output() // #nosec G204 -- stated here
	if err != nil {
		return "", fmt.Errorf("%s %s cannot be downloaded: %w", m.Path, m.Version, err)
	}
	module := struct{ Dir, Sum string }{}
	if err := json.Unmarshal(out, &module); err != nil {
		return "", err
	}
	if module.Sum != m.Sum {
		return "", fmt.Errorf("%s %s has the hash %s, not %s", m.Path, m.Version, module.Sum, m.Sum)
	}
	return module.Dir, nil
}

// Stop ends all programs and removes the folder.
func (c *Cluster) Stop() {
	for _, program := range c.programs {
		_ = program.Process.Kill()
		_ = program.Wait()
	}
	_ = c.environment.Stop()
	_ = os.RemoveAll(c.folder)
}

// Until waits for a condition, as long as a busy machine may need.
func Until(ctx context.Context, what func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		done, err := what(ctx)
		if done {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("it did not happen in time: %w", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Module is a Go module that holds the published definition of a kind.
type Module struct {
	Path, Version, Sum string
	// Definition is the file of the definition within it.
	Definition string
}

// Definitions are the definitions of the kinds that the tests create, as their operators publish them.
var Definitions = []Module{
	{"sigs.k8s.io/jobset", "v0.10.1", "h1:u8QKifNsrWVrlRFe6w2ofYTqFT9ma2DRHxfeB2m9xyU=", "config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml"},
	{"github.com/kubeflow/trainer/v2", "v2.2.0", "h1:whChZckEtycLo1UKH/M0hiNaCUozbLvf9JrgmMv+TAg=", "manifests/base/crds/trainer.kubeflow.org_trainjobs.yaml"},
	{"github.com/kubeflow/training-operator", "v1.8.1", "h1:mVvoBSCInbMBX0gGSn4+Ihj3ycwoLO1iEAw+0qPhQfc=", "manifests/base/crds/kubeflow.org_pytorchjobs.yaml"},
	{"github.com/ray-project/kuberay/ray-operator", "v1.5.0", "h1:KCjCQ7PSsvs9Ke+90CZbbs498nuaIJ/JkXk4vd54EVg=", "config/crd/bases/ray.io_rayjobs.yaml"},
	{"github.com/ray-project/kuberay/ray-operator", "v1.5.0", "h1:KCjCQ7PSsvs9Ke+90CZbbs498nuaIJ/JkXk4vd54EVg=", "config/crd/bases/ray.io_rayclusters.yaml"},
	{"github.com/kubeflow/trainer/v2", "v2.2.0", "h1:whChZckEtycLo1UKH/M0hiNaCUozbLvf9JrgmMv+TAg=", "manifests/base/crds/trainer.kubeflow.org_clustertrainingruntimes.yaml"},
	{"github.com/kubeflow/mpi-operator", "v0.6.0", "h1:RzzG03oyQIiHe/SH2k19N+Hp4QkxEsG2l9G1T7US+ys=", "manifests/base/kubeflow.org_mpijobs.yaml"},
}

// ports is the number of ports that this process has tried, from a port of its own.
var ports = func() *atomic.Int64 {
	first := &atomic.Int64{}
	first.Store(rand.Int64N(20_000)) // #nosec G404 -- no secret
	return first
}()

// FreeAddress returns an address of loopback that nothing listens on, and another one at each call. Its port lies below those that the kernel
// gives to connections, one of which could take it before the program that shall listen there has started.
func FreeAddress() (string, error) {
	var err error
	for range 100 {
		port := strconv.FormatInt(10_000+ports.Add(1)%20_000, 10)
		var listener net.Listener
		if listener, err = net.Listen("tcp", ":"+port); err == nil {
			return net.JoinHostPort("127.0.0.1", port), listener.Close()
		}
	}
	return "", err
}
