package main

import (
	"os"
	"strings"
	"testing"

	"github.com/nodewise/nodewise/clients/go/internal/realserver"
)

func TestTheReadmeShowsIt(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	code := string(program)[strings.Index(string(program), "package main"):]
	if !strings.Contains(string(readme), "```go\n"+code+"```\n") {
		t.Error("the README's example is not examples/predict/main.go")
	}
}

func TestItRuns(t *testing.T) {
	t.Setenv("NODEWISE_SERVER", realserver.Target(t))
	main()
}
