package jobs

import (
	"strings"
	"testing"
)

func TestWhatAFailedCheckDoes(t *testing.T) {
	for value, says := range map[string]string{"": "", "advise": "", "retry": "", "reject": "", "Reject": `annotation nodewise.dev/check is "Reject"; give advise, retry or reject`} {
		annotations := map[string]string{Profile: "p", check: value}
		wish, err := WishOf(annotations)
		if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) || value == "" && wish.Check != Advise {
			t.Error(value, wish.Check, err)
		}
	}
}

// The key changes with what the owner asks, and with nothing else.
func TestTheKeyOfAQuestion(t *testing.T) {
	asked := map[string]string{Profile: "p", Nodes: "1-8", Reason: "because", Chosen: "4", check: "retry", Steps: "s"}
	for name, other := range map[string]bool{Nodes: true, objective: true, samples: true, Settings: true, executionLimit: true, Reason: false, Chosen: false, Requested: false, check: false, Metrics: false} {
		changed := map[string]string{}
		for each, value := range asked {
			changed[each] = value
		}
		changed[name] = "x"
		if (QuestionKey(changed) != QuestionKey(asked)) != other {
			t.Error(name)
		}
	}
}
