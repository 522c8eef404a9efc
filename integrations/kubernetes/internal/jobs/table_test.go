package jobs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/nodewise/nodewise/integrations/kubernetes/internal/testcluster"
)

// onePod are parts of Kubernetes' own types that describe one pod or one service, independent of the number of nodes.
var onePod = []string{
	"affinity", "containers", "env", "envFrom", "headService", "initContainers", "metadata", "resources", "securityContext", "tolerations", "valueFrom", "volumeMounts", "volumes",
}

// counting are names of fields that may hold a count as text.
var counting = regexp.MustCompile(`(?i)index|count|replica|nodes|parallel|^num|^nproc|size|^min|^max|available|member|hosts`)

var brackets = regexp.MustCompile(`\[[^\]]*\]`)

// unknown returns fields that hold, or may hold, a count, an index or a quantity, and are not in a kind's table.
func unknown(kind schema.GroupKind, fields []string) (found []string) {
	for _, field := range fields {
		stands := slices.ContainsFunc(Table[kind], func(known Field) bool {
			path := brackets.ReplaceAllString(known.Path, "[]")
			return path == field || (known.Relation == Independent || known.Relation == Total) && strings.HasPrefix(field, path)
		})
		if !stands {
			found = append(found, field)
		}
	}
	return found
}

// numbersOf walks through a published definition.
func numbersOf(path string, definition map[string]any) (found []string) {
	name := path[strings.LastIndex(path, ".")+1:]
	properties, _ := definition["properties"].(map[string]any)
	if slices.Contains(onePod, name) || properties["containers"] != nil {
		return nil
	}
	kind, _ := definition["type"].(string)
	if kind == "integer" || kind == "number" || definition["x-kubernetes-int-or-string"] == true || kind == "string" && counting.MatchString(name) {
		return []string{path}
	}
	for property, its := range properties {
		found = append(found, numbersOf(path+"."+property, its.(map[string]any))...)
	}
	for _, many := range []string{"items", "additionalProperties"} {
		if its, isMap := definition[many].(map[string]any); isMap {
			found = append(found, numbersOf(path+"[]", its)...)
		}
	}
	return found
}

// The table lists the fields of every operator's definition. A new field that may depend on the number of nodes fails this test until it is
// listed.
func TestTheTableKnowsTheFieldsOfEveryDefinition(t *testing.T) {
	for _, module := range testcluster.Definitions {
		folder, err := module.Folder()
		if err != nil {
			t.Skip("the definitions of operators' kinds cannot be had here: ", err)
		}
		text, err := os.ReadFile(filepath.Join(folder, module.Definition))
		if err != nil {
			t.Fatal(err)
		}
		definition := struct {
			Spec struct {
				Group    string
				Names    struct{ Kind string }
				Versions []struct {
					Name   string
					Schema struct{ OpenAPIV3Schema map[string]any }
				}
			}
		}{}
		if err := yaml.Unmarshal(text, &definition); err != nil {
			t.Fatal(err)
		}
		kind := schema.GroupKind{Group: definition.Spec.Group, Kind: definition.Spec.Names.Kind}
		if Table[kind] == nil {
			continue
		}
		for _, version := range definition.Spec.Versions {
			if !slices.Contains(Kinds, kind.WithVersion(version.Name)) {
				continue
			}
			spec := version.Schema.OpenAPIV3Schema["properties"].(map[string]any)["spec"].(map[string]any)
			fields := numbersOf("spec", spec)
			if len(fields) < 5 {
				t.Error(kind, "has only", fields)
			}
			if missing := unknown(kind, fields); len(missing) > 0 {
				t.Errorf("%s %s: the table does not say how these depend on the number of nodes: %q", kind, module.Version, missing)
			}
		}
	}
}

// numbersIn walks through a Go type.
func numbersIn(path string, in reflect.Type) (found []string) {
	switch in.Kind() {
	case reflect.Pointer:
		return numbersIn(path, in.Elem())
	case reflect.Slice, reflect.Map:
		return numbersIn(path+"[]", in.Elem())
	case reflect.Int, reflect.Int32, reflect.Int64:
		return []string{path}
	case reflect.String:
		if counting.MatchString(path[strings.LastIndex(path, ".")+1:]) {
			return []string{path}
		}
	case reflect.Struct:
		if strings.HasSuffix(in.PkgPath(), "core/v1") || strings.HasSuffix(in.PkgPath(), "meta/v1") {
			return nil
		}
		for field := range in.NumField() {
			name, _, _ := strings.Cut(in.Field(field).Tag.Get("json"), ",")
			found = append(found, numbersIn(path+"."+name, in.Field(field).Type)...)
		}
	}
	return found
}

func TestTheTableKnowsTheFieldsOfAJob(t *testing.T) {
	kind := schema.GroupKind{Group: "batch", Kind: "Job"}
	fields := numbersIn("spec", reflect.TypeFor[batchv1.JobSpec]())
	if missing := unknown(kind, fields); len(missing) > 0 {
		t.Errorf("the table does not say how these depend on the number of nodes: %q", missing)
	}
	for _, known := range Table[kind] {
		path := brackets.ReplaceAllString(known.Path, "[]")
		if strings.HasPrefix(known.Path, "spec.template.") || strings.HasPrefix(known.Path, "metadata.") {
			continue
		}
		if !slices.ContainsFunc(fields, func(field string) bool { return strings.HasPrefix(field, path) }) {
			t.Error("a Job has no", known.Path)
		}
	}
}

// An unknown field is reported. Without this test, the two tests above could pass by checking nothing.
func TestTheTableDoesNotKnowEverything(t *testing.T) {
	kind := schema.GroupKind{Group: "batch", Kind: "Job"}
	type added struct {
		Least    int32 `json:"least"`
		Settings []struct {
			MinPods string `json:"minPods"`
		} `json:"settings"`
	}
	if missing := unknown(kind, numbersIn("spec", reflect.TypeFor[added]())); !slices.Equal(missing, []string{"spec.least", "spec.settings[].minPods"}) {
		t.Error(missing)
	}
	definition := map[string]any{"properties": map[string]any{"least": map[string]any{"type": "integer"}}}
	if missing := unknown(kind, numbersOf("spec", definition)); !slices.Equal(missing, []string{"spec.least"}) {
		t.Error(missing)
	}
}

// lastOf returns the name of a field, annotation or label at the end of a path.
func lastOf(path string) string {
	all := steps.FindAllString(path, -1)
	return strings.Trim(all[len(all)-1], "[]")
}

// kueue is the module whose code states Kueue's names.
var kueue = testcluster.Module{Path: "sigs.k8s.io/kueue", Version: "v0.17.0", Sum: "h1:7hzb38M4eKGzYW+CFv2s1L+swzzacUCHOCXxZmAV90I="}

// independentOfKueue are annotations and labels of Kueue that hold no count of a job's pods. The rule of job-completions-equal-parallelism is
// what Completions do.
var independentOfKueue = []string{
	"kueue.x-k8s.io/component-workload-index", "kueue.x-k8s.io/elastic-job", "kueue.x-k8s.io/job-completions-equal-parallelism",
	"kueue.x-k8s.io/job-owner-gvk", "kueue.x-k8s.io/job-owner-name", "kueue.x-k8s.io/job-uid", "kueue.x-k8s.io/manager",
	"kueue.x-k8s.io/max-exec-time-seconds", "kueue.x-k8s.io/multikueue", "kueue.x-k8s.io/multikueue-origin",
	"kueue.x-k8s.io/multikueue-origin-uid", "kueue.x-k8s.io/pod-group-pod-index", "kueue.x-k8s.io/pod-group-pod-index-label",
	"kueue.x-k8s.io/pod-index-offset", "kueue.x-k8s.io/podset-preferred-topology", "kueue.x-k8s.io/podset-required-topology",
	"kueue.x-k8s.io/podset-slice-required-topology", "kueue.x-k8s.io/podset-unconstrained-topology", "kueue.x-k8s.io/priority-boost",
	"kueue.x-k8s.io/priority-class", "kueue.x-k8s.io/provisioning-request", "kueue.x-k8s.io/queue-name",
	"kueue.x-k8s.io/raycluster-generation", "kueue.x-k8s.io/resource-in-use", "kueue.x-k8s.io/safe-to-forcefully-delete",
	"kueue.x-k8s.io/stopping", "kueue.x-k8s.io/topology", "kueue.x-k8s.io/workload", "kueue.x-k8s.io/workload-slice-name",
	"kueue.x-k8s.io/workload-slice-replacement-for",
}

// Kueue's annotations and labels are in the table, or do not depend on the number of nodes.
func TestTheTableKnowsTheAnnotationsOfKueue(t *testing.T) {
	folder, err := kueue.Folder()
	if err != nil {
		t.Skip("Kueue's names cannot be had here: ", err)
	}
	known, seen := append([]string{}, independentOfKueue...), 0
	for _, fields := range Table {
		for _, field := range fields {
			known = append(known, lastOf(field.Path))
		}
	}
	for _, part := range []string{"apis/kueue/v1beta2", "pkg/controller/constants", "pkg/controller/jobs/*", "pkg/workloadslicing"} {
		files, _ := filepath.Glob(filepath.Join(folder, part, "*.go"))
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, declared := range parsed.Decls {
				constants, isGroup := declared.(*ast.GenDecl)
				if !isGroup || constants.Tok != token.CONST {
					continue
				}
				ast.Inspect(constants, func(node ast.Node) bool {
					literal, isLiteral := node.(*ast.BasicLit)
					if !isLiteral || literal.Kind != token.STRING {
						return true
					}
					name, _ := strconv.Unquote(literal.Value)
					if strings.HasPrefix(name, "kueue.x-k8s.io/") {
						seen++
						if !slices.Contains(known, name) {
							t.Errorf("the table does not say whether %s depends on the number of nodes", name)
						}
					}
					return true
				})
			}
		}
	}
	if seen < 30 {
		t.Error("only", seen, "names were seen")
	}
}

// The guide names every field of the table that depends on the number of nodes.
func TestThePageHasTheTable(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/integrations/kubernetes.md")
	if err != nil {
		t.Skip("the documentation is not here: ", err)
	}
	for kind, fields := range Table {
		for _, field := range fields {
			name := lastOf(field.Path)
			if field.Relation != Independent && !strings.Contains(string(text), name) {
				t.Errorf("%s: %s stands in the table, not on the page", kind, name)
			}
		}
	}
	for kind := range LeftAlone {
		if !strings.Contains(string(text), kind.Kind) {
			t.Error(kind, "is left alone; the page does not say so")
		}
	}
}
