package e2e

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// With NODEWISE_LOAD=10s the extender, on one core and with 100 nodes in each request, gets 1,000 requests per second for that time; then again
// while Nodewise hangs. The test logs the output of `nodewise-kubernetes load`.
func TestLoad(t *testing.T) {
	duration := os.Getenv("NODEWISE_LOAD")
	if duration == "" {
		t.Skip("NODEWISE_LOAD does not say how long")
	}
	addNodes(t, "load", "A100-SXM4-80GB", 50, "20")
	addNodes(t, "load", "H100-SXM5-80GB", 50, "40")
	store(t, "team/load-a", transformer(24, 2048))
	store(t, "team/load-b", transformer(32, 4096))
	end(rig.processes["extender"])
	t.Setenv("GOMAXPROCS", "1")
	if err := startProcess(t.Context(), "extender"); err != nil {
		t.Fatal(err)
	}
	nodes := &corev1.NodeList{}
	if err := rig.kubernetes.List(t.Context(), nodes); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, node := range nodes.Items {
		if node.Labels["pool"] == "load" {
			names = append(names, node.Name)
		}
	}
	resting.Store(true)
	t.Cleanup(func() { resting.Store(false) })
	run := func(what string) {
		process := exec.CommandContext(t.Context(), rig.program, "load", "-url", "https://"+rig.listens["extender"], "-ca", rig.authority, "-duration", duration,
			"-rate", "1000", "-profiles", "team/load-a,team/load-b", "-settings", `{"batch_per_worker_samples": 4}`, "-nodes", strings.Join(names, ","))
		process.Stderr = os.Stderr
		before := cpu(t)
		out, err := process.Output()
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %s  CPU of the extender: %v", what, out, cpu(t)-before)
	}
	run("Nodewise answers")
	signalServer(syscall.SIGSTOP)
	t.Cleanup(func() { signalServer(syscall.SIGCONT) })
	run("Nodewise hangs")
}

// cpu is the CPU time of the extender so far.
func cpu(t *testing.T) time.Duration {
	t.Helper()
	text, err := os.ReadFile("/proc/" + strconv.Itoa(rig.processes["extender"].Process.Pid) + "/stat")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text)) // the name of the process has no space
	user, _ := strconv.Atoi(fields[13])
	system, _ := strconv.Atoi(fields[14])
	return time.Duration(user+system) * 10 * time.Millisecond
}
