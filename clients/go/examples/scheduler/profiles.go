package main

import (
	"context"
	"sync"
	"time"

	nodewise "github.com/nodewise/nodewise/clients/go"
	nodewisev1 "github.com/nodewise/nodewise/clients/go/gen/nodewise/v1"
)

// profiles are the newest revisions that the watch has told of, by profile.
type profiles struct {
	mutex     sync.Mutex
	changed   chan struct{} // closed, and replaced, at every change below
	revisions map[string]int64
	complete  bool
	failure   error
}

// watch listens for as long as the context lasts.
func watch(ctx context.Context, client *nodewise.Client) *profiles {
	p := &profiles{changed: make(chan struct{}), revisions: map[string]int64{}}
	go func() {
		for event, err := range client.WatchProfiles(ctx, &nodewisev1.WatchProfilesRequest{NamePrefix: prefix}) {
			p.mutex.Lock()
			for _, profile := range event.GetProfiles() {
				p.revisions[profile.GetProfileId()] = profile.GetRevision()
			}
			p.complete, p.failure = p.complete || event.GetCaughtUp(), err
			close(p.changed)
			p.changed = make(chan struct{})
			p.mutex.Unlock()
		}
	}()
	return p
}

func (p *profiles) revision(name string) int64 {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.revisions[name]
}

// caughtUp waits until all profiles were told, and counts them.
func (p *profiles) caughtUp(ctx context.Context) (int, error) {
	count := 0
	err := p.wait(ctx, func() bool {
		count = len(p.revisions)
		return p.complete
	})
	return count, err
}

// reached waits until the watch has told of a revision.
func (p *profiles) reached(ctx context.Context, name string, revision int64) error {
	return p.wait(ctx, func() bool { return p.revisions[name] >= revision })
}

func (p *profiles) wait(ctx context.Context, done func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for p.failure == nil && !done() {
		changed := p.changed
		p.mutex.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		p.mutex.Lock()
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return p.failure
}
