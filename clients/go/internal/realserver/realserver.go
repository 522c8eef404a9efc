// Package realserver gives tests a real Nodewise server: the one that NODEWISE_SERVER names ("host:port"), else one that it starts by the
// command that NODEWISE_COMMAND or the PATH has.
package realserver

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// Target is the address of a server that may be shared with other tests. The test is skipped where there is none.
func Target(t testing.TB) string {
	t.Helper()
	if target := os.Getenv("NODEWISE_SERVER"); target != "" {
		return target
	}
	return Start(t, "memory:", "127.0.0.1:0").Target
}

// Server is a server of the test's own.
type Server struct {
	// Target is where it listens, "host:port".
	Target  string
	process *exec.Cmd
}

// Start starts a server with a store, and ends it with the test.
func Start(t testing.TB, store, listen string) *Server {
	t.Helper()
	name := os.Getenv("NODEWISE_COMMAND")
	if name == "" {
		name = "nodewise"
	}
	command, err := exec.LookPath(name)
	if err != nil {
		t.Skip("there is no Nodewise server here: neither NODEWISE_SERVER nor NODEWISE_COMMAND is set, and nodewise is not on the PATH")
	}
	process := exec.Command(command, "serve", "--listen", listen, "--store", store) // #nosec G204 -- the user's own command
	out, err := process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	server := &Server{process: process}
	t.Cleanup(server.Kill)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if target, found := strings.CutPrefix(lines.Text(), "listening on "); found {
			server.Target = target
			return server
		}
	}
	t.Fatalf("%s serve did not start: %v", command, process.Wait())
	return nil
}

// Renew asks it to replace its workers one after the other.
func (s *Server) Renew() error { return s.process.Process.Signal(syscall.SIGHUP) }

// Kill ends it at once.
func (s *Server) Kill() {
	_ = s.process.Process.Kill()
	_ = s.process.Wait()
}
