package collector

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// Names of a pattern's group, which say what its number is.
const (
	stepsPerSecond = "steps_per_second"
	stepSeconds    = "step_seconds"
	stepNumber     = "step"
)

const mostLineBytes = 1 << 20

// Pattern finds a number in lines.
type Pattern struct {
	expression *regexp.Regexp
	group      int
	name       string
	// evaluation finds the lines of an evaluation; nil = it is not known how these look.
	evaluation *regexp.Regexp
}

// ParsePattern reads a regular expression with one group named steps_per_second, step_seconds or step.
func ParsePattern(text string) (Pattern, error) {
	expression, err := regexp.Compile(text)
	if err != nil {
		return Pattern{}, fmt.Errorf("the pattern %q is not a regular expression: %w", text, err)
	}
	for group, name := range expression.SubexpNames() {
		if slices.Contains([]string{stepsPerSecond, stepSeconds, stepNumber}, name) {
			return Pattern{expression: expression, group: group, name: name}, nil
		}
	}
	return Pattern{}, fmt.Errorf("the pattern %q has no group named %s, %s or %s; write e.g. (?P<%s>[0-9.]+) steps/s", text, stepsPerSecond, stepSeconds, stepNumber, stepsPerSecond)
}

// Sample is the speed of a job according to the lines of a window.
type Sample struct {
	// StepsPerSecond is the throughput. Steps is the number of steps in the window, 0 if the lines do not state it.
	StepsPerSecond float64
	Steps          int32
	// Variation is the coefficient of variation of the step time; it needs at least two numbers.
	Variation      float64
	VariationKnown bool
	// At is when it was measured; Source is what it was read from.
	At     time.Time
	Source string
}

// point is a number in a line, and its time.
type point struct {
	at    time.Time
	value float64
}

// evaluating returns the pattern, which then also finds the lines of an evaluation.
func (p Pattern) evaluating(text string) (Pattern, error) {
	if text == "" {
		return p, nil
	}
	expression, err := regexp.Compile(text)
	if err != nil {
		return p, fmt.Errorf("the pattern %q is not a regular expression: %w", text, err)
	}
	p.evaluation = expression
	return p, nil
}

// read returns the numbers in lines, and the lines of an evaluation since a time. Lines of a log begin with their time; others are taken as of
// now.
func (p Pattern) read(lines io.Reader, timed bool, since, now time.Time) (found []point, evaluated string, err error) {
	scanner, evaluation := bufio.NewScanner(lines), []byte(nil)
	scanner.Buffer(nil, mostLineBytes)
	for scanner.Scan() {
		line, at := scanner.Bytes(), now
		if timed {
			end := slices.Index(line, ' ')
			if end < 0 {
				continue
			}
			written, err := time.Parse(time.RFC3339Nano, string(line[:end]))
			if err != nil {
				continue
			}
			at, line = written, line[end+1:]
		}
		if p.evaluation != nil && p.evaluation.Match(line) && !at.Before(since) && !at.After(now) {
			evaluation = append(append(evaluation, line...), '\n')
		}
		match := p.expression.FindSubmatch(line)
		if match == nil {
			continue
		}
		if value, err := strconv.ParseFloat(string(match[p.group]), 64); err == nil && value >= 0 && !math.IsInf(value, 0) {
			found = append(found, point{at, value})
		}
	}
	return found, string(evaluation), scanner.Err()
}

// sample computes the speed from the points within a window; false = there are too few.
func (p Pattern) sample(points []point, begin, end time.Time) (Sample, bool) {
	var within []point
	for _, each := range points {
		if !each.at.Before(begin) && each.at.Before(end) {
			within = append(within, each)
		}
	}
	if p.name == stepNumber {
		if len(within) < 2 {
			return Sample{}, false
		}
		first, last := within[0], within[len(within)-1]
		steps, took := last.value-first.value, last.at.Sub(first.at).Seconds()
		again := slices.ContainsFunc(within, func(each point) bool { return each.value < first.value }) // lines of other ranks may lag a little
		if steps <= 0 || took <= 0 || again {
			return Sample{}, false
		}
		return Sample{StepsPerSecond: steps / took, Steps: int32(min(steps, math.MaxInt32))}, true
	}
	var seconds []float64
	for _, each := range within {
		if value := each.value; value > 0 && p.name == stepSeconds {
			seconds = append(seconds, value)
		} else if value > 0 {
			seconds = append(seconds, 1/value)
		}
	}
	if len(seconds) == 0 {
		return Sample{}, false
	}
	mean, spread := 0.0, 0.0
	for _, each := range seconds {
		mean += each / float64(len(seconds))
	}
	for _, each := range seconds {
		spread += (each - mean) * (each - mean) / float64(max(len(seconds)-1, 1))
	}
	return Sample{StepsPerSecond: 1 / mean, Variation: math.Sqrt(spread) / mean, VariationKnown: len(seconds) > 1}, true
}
