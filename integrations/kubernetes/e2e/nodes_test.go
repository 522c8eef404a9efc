package e2e

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nodewise "github.com/nodewise/nodewise/clients/go"
	nodewisev1 "github.com/nodewise/nodewise/clients/go/gen/nodewise/v1"

	"github.com/nodewise/nodewise/integrations/kubernetes/internal/testcluster"
)

// The guide, step by step: the job gets the number of nodes that Nodewise recommends, with the reason, and runs on them. When Nodewise is
// stopped, jobs run as without it.
func TestAJobGetsItsNumberOfNodes(t *testing.T) {
	addNodes(t, "first", "V100", 8, "")
	store(t, "team/first", measured(t, "V100"))
	eight := nodewise.NodeRange(1, 8)
	eight.WorkersPerNode, eight.Settings = new(int32(8)), &nodewisev1.ConfigurationSettings{GlobalBatchSamples: new(512.0)}
	reply, err := rig.nodewise.Predict(t.Context(), &nodewisev1.PredictRequest{
		Profile: nodewise.StoredProfile("team/first"), Ranges: []*nodewisev1.ConfigurationRange{eight}, Objective: nodewise.Objective(&nodewisev1.Knee{}),
		Work: &nodewisev1.Work{Amount: &nodewisev1.Work_Samples{Samples: 1e6}},
	})
	if err != nil {
		t.Fatal(err)
	}
	expected := reply.GetRecommendation().GetNodes()
	if expected < 2 {
		t.Fatal("the test's job is no good one: ", reply.GetRecommendation())
	}
	asks := map[string]string{"nodewise.dev/profile": "team/first", "nodewise.dev/nodes": "1-8", "nodewise.dev/samples": "1e6", "nodewise.dev/settings": `{"global_batch_samples": 512}`}
	made := job(t, "first", "first", asks)
	if *made.Spec.Parallelism != expected || *made.Spec.Completions != expected {
		t.Error(*made.Spec.Parallelism, *made.Spec.Completions, "not", expected, made.Annotations)
	}
	for name, value := range map[string]string{
		"nodewise.dev/chosen-nodes": strconv.Itoa(int(expected)), "nodewise.dev/requested-nodes": "1",
		"nodewise.dev/finish-seconds": strconv.FormatFloat(reply.GetRecommendation().GetFinishSeconds(), 'f', 0, 64),
	} {
		if made.Annotations[name] != value {
			t.Errorf("%s is %q, not %q", name, made.Annotations[name], value)
		}
	}
	if reason := made.Annotations["nodewise.dev/reason"]; !strings.Contains(reason, reply.GetRecommendation().GetWhy()) || !strings.Contains(reason, "revision 1 of team/first") {
		t.Error(reason)
	}
	t.Log(made.Annotations) // what the guide shows
	if found := placed(t, "first", int(expected)); found["V100"] != int(expected) {
		t.Error(found)
	}
	if told := eventOf(t, made, "NodesChosen"); told.Message != made.Annotations["nodewise.dev/reason"] {
		t.Error(told)
	}
	err = testcluster.Until(t.Context(), func(ctx context.Context) (bool, error) {
		err := rig.kubernetes.Get(ctx, client.ObjectKeyFromObject(made), made)
		return made.Annotations["nodewise.dev/expected-finish"] != "", err
	})
	if err != nil {
		t.Fatal(err)
	}
	finish, err := time.Parse(time.RFC3339, made.Annotations["nodewise.dev/expected-finish"])
	took := finish.Sub(made.Status.StartTime.Time).Seconds()
	if err != nil || took < reply.GetRecommendation().GetFinishSeconds()-2 || took > reply.GetRecommendation().GetFinishSeconds()+2 {
		t.Error(finish, made.Status.StartTime, err)
	}
}

// eventOf waits for an event about a job with a given reason.
func eventOf(t *testing.T, about client.Object, reason string) corev1.Event {
	t.Helper()
	var found corev1.Event
	err := testcluster.Until(t.Context(), func(ctx context.Context) (bool, error) {
		events := &corev1.EventList{}
		err := rig.kubernetes.List(ctx, events, client.InNamespace(about.GetNamespace()))
		for _, each := range events.Items {
			if each.InvolvedObject.UID == about.GetUID() && each.Source.Component == "nodewise" && each.Reason == reason {
				found = each
				return true, nil
			}
		}
		return false, err
	})
	if err != nil {
		t.Fatal(reason, ": ", err, rig.Log("webhook"), rig.Log("allocator"))
	}
	return found
}
