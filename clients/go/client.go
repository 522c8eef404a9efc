package nodewise

import (
	"cmp"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"path"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
)

// Client is a connection to a Nodewise server, or to several behind one name.
type Client struct {
	conn    *grpc.ClientConn
	target  string
	timeout time.Duration // of calls whose context has no deadline; 0 = that of the shared policy
	retry   bool
	config  serviceConfig
}

// NewClient makes a client of the server at a target: "host:port", or any name that gRPC resolves. Nothing is sent before the first call.
// Plain text unless [WithTLS] says otherwise.
func NewClient(target string, options ...Option) (*Client, error) {
	if target == "" {
		return nil, errors.New(`nodewise: the target is empty; give the server as "host:port"`)
	}
	chosen := settings{retry: true, maxReceiveBytes: defaultMaxReceiveBytes, userAgent: "nodewise-go/" + Version}
	for _, option := range options {
		if err := option(&chosen); err != nil {
			return nil, err
		}
	}
	config := readServiceConfig()
	dial, err := chosen.dialOptions(target, config)
	if err != nil {
		return nil, err
	}
	conn, err := grpc.NewClient(target, dial...)
	if err != nil {
		return nil, err
	}
	return &Client{conn: conn, target: target, timeout: chosen.timeout, retry: chosen.retry, config: config}, nil
}

// Close ends every call and the connection. Ingest writers are to be closed before.
func (c *Client) Close() error { return c.conn.Close() }

// Conn is the connection, for generated stubs that are to share it. Such calls have neither the client's deadlines nor its errors.
func (c *Client) Conn() grpc.ClientConnInterface { return c.conn }

// Health is what the server says of itself (empty name), or of one service, e.g. "nodewise.v1.PredictionService".
func (c *Client) Health(ctx context.Context, service string) (healthv1.HealthCheckResponse_ServingStatus, error) {
	request := &healthv1.HealthCheckRequest{Service: service}
	reply, err := invoke[healthv1.HealthCheckResponse](ctx, c, healthv1.Health_Check_FullMethodName, request, nil)
	return reply.GetStatus(), err
}

// invoke calls a unary method. gRPC itself tries again what was cut before its reply began; what was cut within it is begun again here.
func invoke[R any, M interface {
	*R
	proto.Message
}](ctx context.Context, c *Client, method string, request proto.Message, options []grpc.CallOption) (M, error) {
	ctx, cancel := c.bounded(ctx, method)
	defer cancel()
	for attempt := 1; ; attempt++ {
		var header, trailer metadata.MD
		reply := M(new(R))
		all := append(make([]grpc.CallOption, 0, len(options)+3), grpc.StaticMethod(), grpc.Header(&header), grpc.Trailer(&trailer))
		err := c.conn.Invoke(ctx, method, request, reply, append(all, options...)...)
		if err == nil {
			return reply, nil
		}
		failure := c.explained(ctx, err, trailer, method)
		if header.Len() == 0 || !c.again(ctx, method, failure, attempt) {
			return nil, failure
		}
	}
}

// bounded is the context with the client's deadline, where it has none.
func (c *Client) bounded(ctx context.Context, method string) (context.Context, context.CancelFunc) {
	if _, has := ctx.Deadline(); has {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, c.timeoutOf(method))
}

func (c *Client) timeoutOf(method string) time.Duration {
	return cmp.Or(c.timeout, c.config.timeouts[method], otherTimeout)
}

func (c *Client) explained(ctx context.Context, err error, trailer metadata.MD, method string) *Error {
	return explained(ctx, err, trailer, c.target, path.Base(method))
}

// again waits before a call whose reply was cut is begun again, and tells whether it is to be. Only a server that went away is worth another
// attempt: one that is overloaded says when to come back, to the caller.
func (c *Client) again(ctx context.Context, method string, failure *Error, attempt int) bool {
	policy, retried := c.config.policies[method]
	if !c.retry || !retried || failure.Code != codes.Unavailable || attempt >= policy.attempts {
		return false
	}
	return sleep(ctx, policy.pause(attempt, failure))
}

// pause is how long is waited after so many attempts: what the server asks for if that is more, and up to a fifth more or less, so that
// clients do not come back all at once.
func (p retryPolicy) pause(attempt int, failure *Error) time.Duration {
	seconds := min(p.most.Seconds(), p.initial.Seconds()*math.Pow(p.multiplier, float64(min(attempt-1, 60))))
	pause := time.Duration(seconds * (0.8 + 0.4*rand.Float64()) * float64(time.Second))
	if failure != nil && failure.hasDelay {
		return max(pause, failure.delay)
	}
	return pause
}

// sleep waits, and tells whether the context still holds; it does not begin to wait beyond its deadline.
func sleep(ctx context.Context, pause time.Duration) bool {
	if deadline, has := ctx.Deadline(); has && time.Until(deadline) <= pause {
		return false
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// resuming is how interrupted streams and ingest writers resume: as long as the server replies, at most 40 times in a row without a reply.
var resuming = retryPolicy{attempts: 40, initial: 50 * time.Millisecond, most: time.Second, multiplier: 2}

const (
	// patience is how long a server that has gone away is awaited; a server that was never there, for openingPatience.
	patience        = 30 * time.Second
	openingPatience = 10 * time.Second
)

// resumable tells whether another stream or call can be better than one that ended so. A full store stays full until somebody frees space.
func resumable(failure *Error) bool {
	if failure != nil && failure.Reason == "STORE_UNAVAILABLE" && failure.Metadata["cause"] == "full" {
		return false
	}
	return failure == nil || failure.Code == codes.Unavailable || failure.Code == codes.Canceled || failure.Code == codes.DeadlineExceeded
}
