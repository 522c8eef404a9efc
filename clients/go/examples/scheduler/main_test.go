package main

import (
	"os"
	"strings"
	"testing"

	nodewise "github.com/nodewise/nodewise/clients/go"
	nodewisev1 "github.com/nodewise/nodewise/clients/go/gen/nodewise/v1"
	"github.com/nodewise/nodewise/clients/go/internal/realserver"
)

// On a server that has not seen it, it prints what it prints in every language.
func TestTheSchedulerDoesAsInEveryLanguage(t *testing.T) {
	target := realserver.Target(t)
	client, err := nodewise.NewClient(target)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	seen, err := client.ListProfiles(t.Context(), &nodewisev1.ListProfilesRequest{NamePrefix: prefix})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := run(t.Context(), &out, target, 8, 4); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "\ndone: 4 rounds, ") {
		t.Error(out.String())
	}
	page, err := os.ReadFile("../../../examples.md")
	if err != nil || len(seen.GetProfiles()) > 0 {
		t.Log("not compared: the page is not beside this module, or the scheduler has run here before")
		return
	}
	if !strings.Contains(string(page), "```\n"+out.String()+"```\n") {
		t.Errorf("not as in clients/examples.md:\n%s", out.String())
	}
}

func TestArgumentsThatCannotBe(t *testing.T) {
	for _, arguments := range [][]string{{"a:1", "x"}, {"a:1", "7"}, {"a:1", "8", "x"}, {""}} {
		if err := start(t.Context(), arguments); err == nil {
			t.Error(arguments)
		}
	}
}
