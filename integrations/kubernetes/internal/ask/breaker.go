package ask

import (
	"context"
	"sync"
	"time"
)

// breaker lets calls through until one of them shows that the server does not answer. After that it blocks all calls until a probe in the
// background succeeds. Callers never wait for a probe.
type breaker struct {
	ctx          context.Context // its end stops the probes
	probe        func(context.Context) error
	first, most  time.Duration // pauses before probes, doubling from first to most
	changed      func(open bool)
	mutex        sync.Mutex
	why          error // nil = closed
	opened       int
	probeTimeout time.Duration
}

// allow returns nil if a call may go through, else the reason why not.
func (b *breaker) allow() error {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.why
}

// trip opens the breaker, and starts to probe after a pause.
func (b *breaker) trip(why error, pause time.Duration) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.why != nil {
		return
	}
	b.why = why
	b.opened++
	b.changed(true)
	go b.watch(max(pause, b.first))
}

func (b *breaker) watch(pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		select {
		case <-b.ctx.Done():
			return
		case <-timer.C:
		}
		ctx, cancel := context.WithTimeout(b.ctx, b.probeTimeout)
		err := b.probe(ctx)
		cancel()
		if err == nil {
			b.mutex.Lock()
			b.why = nil
			b.changed(false)
			b.mutex.Unlock()
			return
		}
		pause = min(max(2*pause, b.first), b.most)
		timer.Reset(pause)
	}
}
