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

const elsewhere = "integrations.server=nodewise.example.org:50551"

// renderProcess renders the chart with one process enabled.
func renderProcess(t *testing.T, process string, options ...string) string {
	t.Helper()
	return chart(t, append(options, "--namespace", namespace, "--set", "integrations."+process+".enabled=true")...)
}

// renderManifest renders templates of the chart with one process enabled.
func renderManifest(t *testing.T, process string, templates ...string) string {
	t.Helper()
	options := []string{}
	for _, template := range templates {
		options = append(options, "--show-only", "templates/"+template+".yaml")
	}
	return renderProcess(t, process, options...)
}

// allEnabled returns options that enable all processes, and their optional objects.
func allEnabled() []string {
	options := []string{"--namespace", namespace, "--set", "integrations.check.admissionCheck=nodewise,integrations.certificateIssuer.name=internal,monitoring.enabled=true"}
	for _, process := range processes {
		options = append(options, "--set", "integrations."+process+".enabled=true")
	}
	return options
}

func TestTheAPIServerTakesIntegrations(t *testing.T) {
	cluster, kubernetes, warned := reach(t)
	for _, module := range definitions {
		if err := cluster.Install(module); err != nil {
			t.Skip("skipped:", err)
		}
	}
	cases := map[string]string{"all": chart(t, allEnabled()...), "elsewhere": chart(t, append(allEnabled(), "--set", elsewhere)...)}
	for _, process := range processes {
		cases[process] = renderProcess(t, process)
	}
	for name, text := range cases {
		t.Run(name, func(t *testing.T) {
			all := objects(t, text)
			apply(t, kubernetes, all)
			admitsPods(t, kubernetes, all)
			if len(warned.said) > 0 {
				t.Errorf("the API server warns: %s", warned.said)
			}
		})
	}
}

// A release has the processes that are enabled, and its own server unless they ask another.
func TestReleaseHasWhatIsEnabled(t *testing.T) {
	cases := map[string]string{"nodewise": chart(t)}
	for _, process := range processes {
		cases["nodewise nodewise-"+process] = renderProcess(t, process)
		cases["nodewise-"+process] = renderProcess(t, process, "--set", elsewhere)
	}
	for want, text := range cases {
		found := []string{}
		for _, object := range objects(t, text) {
			if object.GetKind() == "Deployment" {
				found = append(found, object.GetName())
			}
			if of := object.GetLabels()["app.kubernetes.io/name"]; of == "nodewise" && !strings.HasPrefix(want, "nodewise ") && want != "nodewise" {
				t.Errorf("%s: %s %s belongs to a server", want, object.GetKind(), object.GetName())
			}
		}
		if !sameNames(strings.Join(found, " "), want) {
			t.Errorf("%s, not %s", found, want)
		}
	}
}

// Each selector selects the pods that it is meant for, and the server admits the integrations beside the callers that the values name.
func TestSelectorsOfIntegrations(t *testing.T) {
	all := objects(t, chart(t, append(allEnabled(), "--set", "networkPolicy.from[0].namespaceSelector.matchLabels.team=a")...))
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
			if found, want := selected(selector), cmp.Or(several[name], object.GetName()); !sameNames(found, want) {
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
			if found := selected(selector); !sameNames(found, integrations) {
				t.Errorf("the server admits the pods of %s", found)
			}
		}
	}
	if count != 15 { // 7 Deployments, 4 Services, 2 policies, a budget and a monitor
		t.Errorf("%d selectors", count)
	}
}

// An empty list of callers admits everybody.
func TestCallersAreNotRestrictedByIntegrations(t *testing.T) {
	for _, object := range objects(t, renderProcess(t, "check", "--set-json", "networkPolicy.from=[]", "--show-only", "templates/networkpolicy.yaml")) {
		ingress, _, _ := unstructured.NestedSlice(object.Object, "spec", "ingress")
		if from, _, err := unstructured.NestedSlice(ingress[0].(map[string]any), "from"); err != nil || len(from) != 0 {
			t.Errorf("%s: %v %v", object.GetName(), from, err)
		}
	}
}

// sameNames compares names in any order.
func sameNames(some, others string) bool {
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
		text := renderProcess(t, "check", append(each.options, "--show-only", "templates/integrations-configuration.yaml")...)
		if found, _, err := unstructured.NestedStringMap(objects(t, text)[0].Object, "data"); err != nil || !maps.Equal(found, each.want) {
			t.Errorf("%s: %v %v", name, found, err)
		}
	}
}
