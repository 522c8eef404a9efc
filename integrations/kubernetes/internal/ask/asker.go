// Package ask asks Nodewise in a way that never blocks callers that cannot wait. Curves are answered from memory and refreshed in the
// background, and every call has a time-out. If the server does not answer, that costs one time-out at most; after that nothing is sent until a
// probe succeeds.
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

// ErrNoAnswerYet is the error of [Asker.Cached] while the first answer is still being computed.
var ErrNoAnswerYet = errors.New("no answer from Nodewise yet; the question is asked in the background")

// Server is the part of *nodewise.Client that an Asker calls.
type Server interface {
	Predict(context.Context, *nodewisev1.PredictRequest, ...grpc.CallOption) (*nodewisev1.PredictResponse, error)
	Health(context.Context, string) (healthv1.HealthCheckResponse_ServingStatus, error)
}

// Settings are time limits and sizes. Zero values stand for the defaults.
type Settings struct {
	// Timeout is the longest wait of a caller that waits for an answer; default 2 s.
	Timeout time.Duration
	// Patience is the longest wait for the first answer about a job, for callers that otherwise do not wait; default 30 ms.
	Patience time.Duration
	// RefreshTimeout is the time-out of questions in the background; default 10 s.
	RefreshTimeout time.Duration
	// Fresh is how long an answer is used before it is requested again; default 30 s.
	Fresh time.Duration
	// Keep is how long an answer is used if no newer one is available; default 1 h.
	Keep time.Duration
	// RetryRefused is how long a refusal is used before the question is asked again; default 5 s.
	RetryRefused time.Duration
	// FirstProbe is the pause before the first probe of a server that does not answer, MostProbe the longest pause between probes; default 500 ms
	// and 15 s.
	FirstProbe, MostProbe time.Duration
	// Entries is the number of questions in the cache; default 10,000.
	Entries int
	// Workers is the number of questions asked concurrently in the background; default 4.
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

// Asker asks one server. It is safe for concurrent use.
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

// entry is the cached state of a question. The mutex of the asker guards it.
type entry struct {
	curve *Curve
	err   error         // of the last answer, if it was a refusal
	next  time.Time     // when to ask again
	asked time.Time     // when it was queued or sent; zero = it is neither
	done  chan struct{} // closed when it is answered
	used  time.Time
}

// New returns an asker. Its background work ends with ctx.
func New(ctx context.Context, server Server, settings Settings) *Asker {
	settings.fill()
	a := &Asker{server: server, settings: settings, ctx: ctx, queue: make(chan Question, 1024), entries: map[Question]*entry{}, now: time.Now}
	a.breaker = &breaker{
		ctx: ctx, probe: a.probe, first: settings.FirstProbe, most: settings.MostProbe, probeTimeout: settings.Timeout, changed: recordBreaker,
	}
	for range settings.Workers {
		go a.refresh()
	}
	return a
}

// Cached returns the cached curve at once. If the curve is old or missing, it is requested in the background. The error says why there is no
// curve: Nodewise refused, Nodewise is not reachable, or [ErrNoAnswerYet].
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

// Soon is like [Asker.Cached], but waits for a first answer that was already requested, up to Patience after the request.
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

// Ask returns a fresh curve if the server answers in time, else the cached one.
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

// Do calls the server for anything other than a curve, within the time-out. It fails at once while the server is known not to answer.
func (a *Asker) Do(ctx context.Context, call func(context.Context) error) error {
	return a.guarded(ctx, a.settings.Timeout, call)
}

// Reachable returns nil unless the server is known not to answer.
func (a *Asker) Reachable() error { return a.breaker.allow() }

// given returns the curve or error for a caller, from the cached state.
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

// entry returns the entry of a question and creates a missing one. The caller holds the lock.
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

// forget makes room in the cache: of each sample it removes the question that was unused for the longest time, a quarter of all.
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

// answer asks the server and caches the answer.
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
		return nil, ErrNoAnswerYet // removed meanwhile
	case err == nil:
		if found.curve, found.err = question.read(reply, now); found.err != nil {
			found.next = now.Add(a.settings.RetryRefused)
			return nil, found.err
		}
		found.next = now.Add(a.settings.Fresh)
	case gone(err) || a.breaker.allow() != nil:
		return nil, err
	default: // the server refuses: the previous answer is no longer valid
		found.curve, found.err, found.next = nil, err, now.Add(a.settings.RetryRefused)
		return nil, err
	}
	return found.curve, nil
}

// guarded calls within a time-out, and opens the breaker if the server does not answer.
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

// gone reports whether an error means that the server cannot answer any question, rather than this one.
func gone(err error) bool {
	var failure *nodewise.Error
	if !errors.As(err, &failure) {
		return true
	}
	switch failure.Reason {
	case "OVERLOADED", "STORE_UNAVAILABLE", "COMPUTE_LOST", "DEADLINE_EXCEEDED":
		return true
	case "": // the request or the reply was lost
		return failure.Code != codes.InvalidArgument
	}
	return false
}
