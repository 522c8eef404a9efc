package chart

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/nodewise/nodewise/integrations/kubernetes/internal/testcluster"
)

var processes = []string{"allocator", "check", "collector", "extender", "recommender", "webhook"}

// definitions are those of other operators' kinds that the chart can create.
var definitions = []testcluster.Module{
	{Path: "sigs.k8s.io/kueue", Version: "v0.17.1", Sum: "h1:r4cwg3ZFF75l7RjVbdCJgM+0RpU0MJGp7t3rLH8Zyh4=", Definition: "config/components/crd/bases"},
	{Path: "github.com/cert-manager/cert-manager", Version: "v1.20.0", Sum: "h1:czZamsFJ1YdKPhpv+SopJZN9t3W68vQBnFYUevSHGqY=", Definition: "deploy/crds/cert-manager.io_certificates.yaml"},
	monitors("podmonitors"), monitors("prometheusrules"), monitors("servicemonitors"),
}

func monitors(kinds string) testcluster.Module {
	return testcluster.Module{
		Path: "github.com/prometheus-operator/prometheus-operator", Version: "v0.85.0", Sum: "h1:M5xLCLEoaW2IJfnuCwFzzpL+jSVQu3KGT84Pye+fW8s=",
		Definition: "example/prometheus-operator-crd/monitoring.coreos.com_" + kinds + ".yaml",
	}
}

// integration renders templates with one process enabled.
func integration(t *testing.T, process string, templates ...string) string {
	t.Helper()
	options := []string{"--namespace", namespace, "--set", "integrations." + process + ".enabled=true"}
	for _, template := range templates {
		options = append(options, "--show-only", "templates/"+template+".yaml")
	}
	return chart(t, options...)
}

// every returns options that enable all processes, and what is optional of them.
func every() []string {
	options := []string{"--namespace", namespace, "--set", "integrations.check.admissionCheck=nodewise,integrations.certificateIssuer.name=internal,monitoring.enabled=true"}
	for _, process := range processes {
		options = append(options, "--set", "integrations."+process+".enabled=true")
	}
	return options
}

func names(all []*unstructured.Unstructured) []string {
	found := []string{}
	for _, object := range all {
		found = append(found, object.GetKind()+" "+object.GetName())
	}
	slices.Sort(found)
	return found
}

func TestTheAPIServerTakesIntegrations(t *testing.T) {
	running, kubernetes, said := reach(t)
	for _, module := range definitions {
		if err := running.Install(module); err != nil {
			t.Skip("skipped:", err)
		}
	}
	cases := map[string][]string{"all": every(), "elsewhere": append(every(), "--set", "integrations.server=nodewise.example.org:50551")}
	for _, process := range processes {
		cases[process] = []string{"--namespace", namespace, "--set", "integrations." + process + ".enabled=true"}
	}
	for name, options := range cases {
		t.Run(name, func(t *testing.T) {
			all := objects(t, chart(t, options...))
			apply(t, kubernetes, all)
			admitsPods(t, kubernetes, all)
			if len(said.said) > 0 {
				t.Errorf("the API server warns: %s", said.said)
			}
			of := processes
			if len(cases[name]) == 4 {
				of = []string{name}
			}
			found := names(all)
			for _, process := range of {
				if !slices.Contains(found, "Deployment nodewise-"+process) {
					t.Errorf("%s is not rendered: %s", process, found)
				}
			}
			if serves := slices.Contains(found, "Deployment nodewise"); serves == (name == "elsewhere") {
				t.Errorf("a server is rendered: %v", serves)
			}
		})
	}
}

func TestIntegrationsAreOptional(t *testing.T) {
	if text := chart(t); strings.Contains(text, "nodewise-kubernetes") {
		t.Error(text)
	}
	text := strings.Join(names(objects(t, chart(t, append(every(), "--set", "integrations.server=nodewise.example.org:50551")...))), "\n")
	for _, of := range []string{"ServiceMonitor", "PrometheusRule", "HorizontalPodAutoscaler", "nodewise-settings", "nodewise-headless", "NetworkPolicy nodewise\n"} {
		if strings.Contains(text, of) {
			t.Errorf("a release without a server has one's %s: %s", of, text)
		}
	}
}

// Each selector selects the pods that it is meant for, and the server admits the integrations beside the callers that the values name.
func TestSelectorsOfIntegrations(t *testing.T) {
	all := objects(t, chart(t, append(every(), "--set", "networkPolicy.from[0].namespaceSelector.matchLabels.team=a")...))
	selected := func(selector map[string]string) string {
		found := []string{}
		for _, object := range all {
			labels, is, _ := unstructured.NestedStringMap(object.Object, "spec", "template", "metadata", "labels")
			if is && !slices.ContainsFunc(slices.Collect(maps.Keys(selector)), func(name string) bool { return labels[name] != selector[name] }) {
				found = append(found, object.GetName())
			}
		}
		return strings.Join(found, " ")
	}
	const integrations = "nodewise-webhook nodewise-recommender nodewise-extender nodewise-collector nodewise-check nodewise-allocator"
	several := map[string]string{"NetworkPolicy nodewise-integrations": integrations, "PodMonitor nodewise-integrations": integrations, "Service nodewise-headless": "nodewise"}
	count := 0
	for _, object := range all {
		for _, path := range []string{"spec.selector", "spec.selector.matchLabels", "spec.podSelector.matchLabels"} {
			selector, is, err := unstructured.NestedStringMap(object.Object, strings.Split(path, ".")...)
			if !is || err != nil || object.GetKind() == "ServiceMonitor" {
				continue
			}
			count++
			name := object.GetKind() + " " + object.GetName()
			if found, want := selected(selector), cmp.Or(several[name], object.GetName()); !same(found, want) {
				t.Errorf("%s selects the pods of %s", name, found)
			}
		}
		if object.GetKind() == "NetworkPolicy" && object.GetName() == "nodewise" {
			ingress, _, _ := unstructured.NestedSlice(object.Object, "spec", "ingress")
			from, _, err := unstructured.NestedSlice(ingress[0].(map[string]any), "from")
			if err != nil || len(from) != 2 {
				t.Fatal(from, err)
			}
			selector, _, _ := unstructured.NestedStringMap(from[1].(map[string]any), "podSelector", "matchLabels")
			if found := selected(selector); !same(found, integrations) {
				t.Errorf("the server admits the pods of %s", found)
			}
		}
	}
	if count != 15 { // 7 Deployments, 4 Services, 2 policies, a budget and a monitor
		t.Errorf("%d selectors", count)
	}
}

// same compares names in any order.
func same(some, others string) bool {
	return slices.Equal(slices.Sorted(strings.FieldsSeq(some)), slices.Sorted(strings.FieldsSeq(others)))
}

func TestConnectionFollowsTheSettings(t *testing.T) {
	for name, each := range map[string]struct {
		options []string
		want    map[string]string
	}{
		"tokens":  {nil, map[string]string{"NODEWISE_SERVER": "nodewise.nodewise-system.svc:50551", "NODEWISE_TLS_CA": "/etc/nodewise/server/ca.crt", "NODEWISE_TOKEN_FILE": "/etc/nodewise/server/token"}},
		"callers": {[]string{"--set", "settings.authentication={certificates},settings.tls.client_authorities=/ca.crt"}, map[string]string{"NODEWISE_SERVER": "nodewise.nodewise-system.svc:50551", "NODEWISE_TLS_CA": "/etc/nodewise/server/ca.crt", "NODEWISE_TLS_CERT": "/etc/nodewise/server/tls.crt", "NODEWISE_TLS_KEY": "/etc/nodewise/server/tls.key"}},
		"elsewhere": {[]string{"--set", "integrations.server=nodewise.example.org:443,integrations.environment.NODEWISE_TLS_CA=system"},
			map[string]string{"NODEWISE_SERVER": "nodewise.example.org:443", "NODEWISE_TLS_CA": "system", "NODEWISE_TOKEN_FILE": "/etc/nodewise/server/token"}},
	} {
		text := chart(t, append(each.options, "--namespace", namespace, "--set", "integrations.check.enabled=true", "--show-only", "templates/integrations-configuration.yaml")...)
		if found, _, err := unstructured.NestedStringMap(objects(t, text)[0].Object, "data"); err != nil || !maps.Equal(found, each.want) {
			t.Errorf("%s: %v %v", name, found, err)
		}
	}
}
