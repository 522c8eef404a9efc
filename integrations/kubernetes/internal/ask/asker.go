// Package ask asks Nodewise so that nobody waits for it who cannot: curves are answered from memory and refreshed in the background, every
// call has a time-out, and a server that is gone costs one time-out at most, then nothing until it is back.
package ask

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	nodewise "github.com/nodewise/nodewise/clients/go"
	nodewisev1 "github.com/nodewise/nodewise/clients/go/gen/nodewise/v1"
)

// ErrNoAnswerYet is what [Asker.Cached] says where nothing is known yet; the answer is on its way.
var ErrNoAnswerYet = errors.New("no answer from Nodewise yet; it is asked in the background")

// Server is what is called; *nodewise.Client is one.
type Server interface {
	Predict(context.Context, *nodewisev1.PredictRequest, ...grpc.CallOption) (*nodewisev1.PredictResponse, error)
	Health(context.Context, string) (healthv1.HealthCheckResponse_ServingStatus, error)
}

// Settings say how long things may take and last. What is zero has the default.
type Settings struct {
	// Timeout is what a caller who waits may wait at most; default 2 s.
	Timeout time.Duration
	// Patience is for the first answer about a job, of callers who otherwise do not wait; default 30 ms.
	Patience time.Duration
	// RefreshTimeout is that of questions in the background, which nobody waits for; default 10 s.
	RefreshTimeout time.Duration
	// Fresh is how long an answer is given without asking again; default 30 s.
	Fresh time.Duration
	// Keep is how long an answer is given while no newer one is to be had; default 1 h.
	Keep time.Duration
	// RetryRefused is how long a refusal is given without asking again; default 5 s.
	RetryRefused time.Duration
	// FirstProbe and MostProbe are the pauses before the first probe of a server that is gone, and at most between probes; default 500 ms and 15 s.
	FirstProbe, MostProbe time.Duration
	// Entries are the questions that are remembered; default 10,000.
	Entries int
	// Workers are the questions asked at once in the background; default 4.
	Workers int
}

func (s *Settings) fill() {
	for value, standard := range map[*time.Duration]time.Duration{
		&s.Timeout: 2 * time.Second, &s.Patience: 30 * time.Millisecond, &s.RefreshTimeout: 10 * time.Second, &s.Fresh: 30 * time.Second, &s.Keep: time.Hour, &s.RetryRefused: 5 * time.Second,
		&s.FirstProbe: 500 * time.Millisecond, &s.MostProbe: 15 * time.Second,
	} {
		if *value == 0 {
			*value = standard
		}
	}
	if s.Entries == 0 {
		s.Entries = 10_000
	}
	if s.Workers == 0 {
		s.Workers = 4
	}
}

// Asker asks one server. It is safe for several goroutines.
type Asker struct {
	server   Server
	settings Settings
	breaker  *breaker
	ctx      context.Context
	queue    chan Question
	mutex    sync.RWMutex
	entries  map[Question]*entry
	now      func() time.Time
}

// entry is what is known of a question; mutex of the asker guards it.
type entry struct {
	curve *Curve
	err   error         // of the last answer, where that was a refusal
	next  time.Time     // when to ask again
	asked time.Time     // since when it is in the queue, or being asked; zero = it is not
	done  chan struct{} // closed when that is over
	used  time.Time
}

// New makes an asker; ctx ends what it does in the background.
func New(ctx context.Context, server Server, settings Settings) *Asker {
	settings.fill()
	a := &Asker{server: server, settings: settings, ctx: ctx, queue: make(chan Question, 1024), entries: map[Question]*entry{}, now: time.Now}
	a.breaker = &breaker{
		ctx: ctx, probe: a.probe, first: settings.FirstProbe, most: settings.MostProbe, probeTimeout: settings.Timeout, told: tellBreaker,
	}
	for range settings.Workers {
		go a.refresh()
	}
	return a
}

// Cached is the curve as far as it is known, at once. Where it is old or not known, it is asked for in the background. The error says why there
// is none: what Nodewise refused, that it is not reachable, or [ErrNoAnswerYet].
func (a *Asker) Cached(question Question) (*Curve, error) {
	now := a.now()
	a.mutex.RLock()
	found := a.entries[question]
	if found != nil && !found.asked.IsZero() || found != nil && now.Before(found.next) {
		curve, err := found.curve, found.err
		a.mutex.RUnlock()
		return a.given(now, curve, err)
	}
	a.mutex.RUnlock()
	a.mutex.Lock()
	defer a.mutex.Unlock()
	found = a.entry(question, now)
	if found.asked.IsZero() && a.breaker.allow() == nil {
		select {
		case a.queue <- question:
			found.asked, found.done = now, make(chan struct{})
		default:
			count("dropped")
		}
	}
	return a.given(now, found.curve, found.err)
}

// Soon is [Asker.Cached], but waits for a first answer that is on its way, no longer than its patience after it was asked for.
func (a *Asker) Soon(question Question) (*Curve, error) {
	curve, err := a.Cached(question)
	if !errors.Is(err, ErrNoAnswerYet) {
		return curve, err
	}
	a.mutex.RLock()
	found, done, left := a.entries[question], chan struct{}(nil), time.Duration(0)
	if found != nil && !found.asked.IsZero() {
		done, left = found.done, a.settings.Patience-a.now().Sub(found.asked)
	}
	a.mutex.RUnlock()
	if done == nil || left <= 0 {
		return curve, err
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-done:
		return a.Cached(question)
	case <-timer.C:
		return curve, err
	}
}

// Ask is the curve, fresh where the server answers in time, else as far as it is known.
func (a *Asker) Ask(ctx context.Context, question Question) (*Curve, error) {
	now := a.now()
	a.mutex.Lock()
	found := a.entry(question, now)
	curve, err, due := found.curve, found.err, !now.Before(found.next)
	a.mutex.Unlock()
	if due {
		if curve, err = a.answer(ctx, question, a.settings.Timeout); err != nil {
			a.mutex.RLock()
			curve = found.curve
			a.mutex.RUnlock()
		}
	}
	return a.given(now, curve, err)
}

// Do calls the server for something else than a curve, within the time-out, unless it is known to be gone.
func (a *Asker) Do(ctx context.Context, call func(context.Context) error) error {
	return a.guarded(ctx, a.settings.Timeout, call)
}

// Reachable is nil unless the server is known to be gone.
func (a *Asker) Reachable() error { return a.breaker.allow() }

// given is what a caller gets of what is known.
func (a *Asker) given(now time.Time, curve *Curve, err error) (*Curve, error) {
	switch {
	case curve != nil && now.Sub(curve.AskedAt) <= a.settings.Fresh+a.settings.RefreshTimeout:
		count("answered")
		return curve, nil
	case curve != nil && now.Sub(curve.AskedAt) <= a.settings.Keep:
		count("stale")
		return curve, nil
	case err != nil:
		count("refused")
		return nil, err
	}
	if err := a.breaker.allow(); err != nil {
		count("unreachable")
		return nil, err
	}
	count("unanswered")
	return nil, ErrNoAnswerYet
}

// entry is that of a question, made where there is none; the caller holds the lock.
func (a *Asker) entry(question Question, now time.Time) *entry {
	found := a.entries[question]
	if found == nil {
		if len(a.entries) >= a.settings.Entries {
			a.forget()
		}
		found = &entry{}
		a.entries[question] = found
	}
	found.used = now
	return found
}

// forget makes room: out go the questions that were not asked for longest, a quarter of a sample.
func (a *Asker) forget() {
	var oldest Question
	for range 1 + a.settings.Entries/100 {
		var since time.Time
		seen := 0
		for question, entry := range a.entries { // in random order
			if since.IsZero() || entry.used.Before(since) {
				oldest, since = question, entry.used
			}
			if seen++; seen == 16 {
				break
			}
		}
		delete(a.entries, oldest)
	}
}

func (a *Asker) refresh() {
	for {
		select {
		case <-a.ctx.Done():
			return
		case question := <-a.queue:
			_, _ = a.answer(a.ctx, question, a.settings.RefreshTimeout)
		}
	}
}

// answer asks the server and remembers what it says.
func (a *Asker) answer(ctx context.Context, question Question, timeout time.Duration) (*Curve, error) {
	a.mutex.RLock()
	before := a.entries[question]
	var digest string
	if before != nil && before.curve != nil {
		digest = before.curve.digest
	}
	a.mutex.RUnlock()
	var reply *nodewisev1.PredictResponse
	err := a.guarded(ctx, timeout, func(ctx context.Context) (err error) {
		reply, err = a.server.Predict(ctx, question.request(digest, nodewisev1.Freshness_FRESHNESS_WAIT))
		return err
	})
	now := a.now()
	a.mutex.Lock()
	defer a.mutex.Unlock()
	found := a.entry(question, now)
	if !found.asked.IsZero() {
		found.asked = time.Time{}
		close(found.done)
	}
	switch {
	case err == nil && reply.GetUnchanged() && found.curve != nil:
		found.curve, found.err, found.next = found.curve.confirmed(now), nil, now.Add(a.settings.Fresh)
	case err == nil && reply.GetUnchanged():
		return nil, ErrNoAnswerYet // forgotten meanwhile
	case err == nil:
		found.curve, found.err, found.next = question.read(reply, now), nil, now.Add(a.settings.Fresh)
	case gone(err) || a.breaker.allow() != nil:
		return nil, err
	default: // the server says no: what was known before does not hold
		found.curve, found.err, found.next = nil, err, now.Add(a.settings.RetryRefused)
		return nil, err
	}
	return found.curve, nil
}

// guarded calls within a time-out, and remembers that the server is gone.
func (a *Asker) guarded(ctx context.Context, timeout time.Duration, call func(context.Context) error) error {
	if err := a.breaker.allow(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	begun := time.Now()
	err := call(ctx)
	took(time.Since(begun), err)
	if err == nil || !gone(err) || errors.Is(ctx.Err(), context.Canceled) {
		return err
	}
	var failure *nodewise.Error
	var pause time.Duration
	if errors.As(err, &failure) {
		pause, _ = failure.RetryDelay()
	}
	err = fmt.Errorf("no answer from Nodewise: %w", err)
	a.breaker.trip(err, min(pause, a.settings.MostProbe))
	return err
}

func (a *Asker) probe(ctx context.Context) error {
	status, err := a.server.Health(ctx, "")
	if err == nil && status != healthv1.HealthCheckResponse_SERVING {
		return fmt.Errorf("the server is %v", status)
	}
	return err
}

// gone tells whether an error says of the server, not of the question, that it cannot answer.
func gone(err error) bool {
	var failure *nodewise.Error
	if !errors.As(err, &failure) {
		return true
	}
	switch failure.Reason {
	case "OVERLOADED", "STORE_UNAVAILABLE", "COMPUTE_LOST", "DEADLINE_EXCEEDED":
		return true
	case "": // it never came to the server, or the answer never came back
		return failure.Code != codes.InvalidArgument
	}
	return false
}
