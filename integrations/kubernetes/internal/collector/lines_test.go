package collector

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"time"
)

var begin = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func TestWhatLinesSay(t *testing.T) {
	log := strings.Join([]string{
		"2026-01-01T11:59:59.5Z step 90 loss 3.1 step time 9 s",
		"2026-01-01T12:00:00Z step 100 loss 3.0 step time 0.5 s",
		"2026-01-01T12:00:10.5Z checkpoint saved",
		"no time at all step 7",
		"2026-01-01T12:00:20Z step 140 loss 2.9 step time 0.5 s",
		"2026-01-01T12:00:30Z step 150 loss nan step time nan s",
		"2026-01-01T12:00:40Z step 180 loss 2.8 step time 0.8 s",
		"2026-01-01T12:01:00Z step 220 loss 2.7 step time 7 s",
	}, "\n")
	for pattern, expected := range map[string]Sample{
		`step (?P<step>\d+) loss`:                         {StepsPerSecond: 2, Steps: 80},
		`step time (?P<step_seconds>[0-9.]+) s`:           {StepsPerSecond: 1 / 0.6, Variation: math.Sqrt(0.03) / 0.6, VariationKnown: true},
		`never (?P<steps_per_second>[0-9.]+)`:             {},
		`step time (?P<steps_per_second>[0-9.]+) s`:       {StepsPerSecond: 1 / ((2 + 2 + 1.25) / 3), Variation: math.Sqrt((2*0.0625+0.25)/2) / 1.75, VariationKnown: true},
		`2.8 step time (?P<steps_per_second>[0-9.]+) s.*`: {StepsPerSecond: 0.8},
	} {
		parsed, err := ParsePattern(pattern)
		if err != nil {
			t.Fatal(err)
		}
		points, _, err := parsed.read(strings.NewReader(log), true, begin, begin)
		if err != nil {
			t.Fatal(err)
		}
		found, enough := parsed.sample(points, begin, begin.Add(time.Minute))
		if enough != (expected != Sample{}) || math.Abs(found.StepsPerSecond-expected.StepsPerSecond) > 1e-12 || math.Abs(found.Variation-expected.Variation) > 1e-12 ||
			found.Steps != expected.Steps || found.VariationKnown != expected.VariationKnown {
			t.Errorf("%s: %+v, not %+v", pattern, found, expected)
		}
	}
}

func TestCountsThatFall(t *testing.T) {
	pattern, err := ParsePattern(`step (?P<step>\d+)`)
	if err != nil {
		t.Fatal(err)
	}
	for text, expected := range map[string]bool{"100 110 109 120": true, "100 110 90 120": false, "100 100": false} { // another rank, a restart, no step
		var points []point
		for index, each := range strings.Fields(text) {
			value, err := strconv.ParseFloat(each, 64)
			if err != nil {
				t.Fatal(err)
			}
			points = append(points, point{begin.Add(time.Duration(index) * time.Second), value})
		}
		if _, enough := pattern.sample(points, begin, begin.Add(time.Minute)); enough != expected {
			t.Error(text, enough)
		}
	}
}

func TestMetricsSayHowItIsNow(t *testing.T) {
	parsed, err := ParsePattern(`^training_steps_per_second(\{.*\})? (?P<steps_per_second>\S+)$`)
	if err != nil {
		t.Fatal(err)
	}
	points, _, err := parsed.read(strings.NewReader("# HELP training_steps_per_second x\n# TYPE training_steps_per_second gauge\ntraining_steps_per_second{rank=\"0\"} 3.5e+00\n"), false, begin, begin)
	if found, enough := parsed.sample(points, begin, begin.Add(time.Minute)); err != nil || !enough || found.StepsPerSecond != 3.5 || found.VariationKnown {
		t.Error(found, enough, err)
	}
}

func TestPatternsThatSayNothing(t *testing.T) {
	for _, wrong := range []string{"(", `step (\d+)`, `(?P<speed>\d+)`} {
		if _, err := ParsePattern(wrong); err == nil || !strings.Contains(err.Error(), "pattern") {
			t.Error(wrong, err)
		}
	}
}
