package ask

import (
	"context"
	"sync"
	"time"
)

// breaker lets calls through until one finds the server gone; then none, until a probe in the background has found it back. No caller pays
// for a probe.
type breaker struct {
	ctx          context.Context // ends the probes
	probe        func(context.Context) error
	first, most  time.Duration // pauses before probes: doubled from the first up to the most
	told         func(open bool)
	mutex        sync.Mutex
	why          error // nil = closed
	opened       int
	probeTimeout time.Duration
}

// allow is nil where a call may go through, else why not.
func (b *breaker) allow() error {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.why
}

// trip opens the breaker, and begins to probe after a pause.
func (b *breaker) trip(why error, pause time.Duration) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.why != nil {
		return
	}
	b.why = why
	b.opened++
	b.told(true)
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
			b.told(false)
			b.mutex.Unlock()
			return
		}
		pause = min(max(2*pause, b.first), b.most)
		timer.Reset(pause)
	}
}
