package nodewise_test

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	nodewise "github.com/nodewise/nodewise/clients/go"
	nodewisev1 "github.com/nodewise/nodewise/clients/go/gen/nodewise/v1"
	nodewisev1beta1 "github.com/nodewise/nodewise/clients/go/gen/nodewise/v1beta1"
)

// fake is a server on a real loopback socket whose answers are those of its functions; what has none is unimplemented.
type fake struct {
	nodewisev1.UnimplementedPredictionServiceServer
	nodewisev1.UnimplementedProfileServiceServer
	nodewisev1.UnimplementedScheduleServiceServer
	nodewisev1beta1.UnimplementedSimulationServiceServer

	predict  func(context.Context, *nodewisev1.PredictRequest) (*nodewisev1.PredictResponse, error)
	batch    func(context.Context, *nodewisev1.BatchPredictRequest) (*nodewisev1.BatchPredictResponse, error)
	appended func(context.Context, *nodewisev1.AppendProfileRequest) (*nodewisev1.AppendProfileResponse, error)
	ingest   func(context.Context, *nodewisev1.IngestBatchRequest) (*nodewisev1.IngestBatchResponse, error)
	list     func(context.Context, *nodewisev1.ListProfilesRequest) (*nodewisev1.ListProfilesResponse, error)
	schedule func(context.Context, *nodewisev1.ScheduleRequest) (*nodewisev1.ScheduleResponse, error)
	watch    func(*nodewisev1.WatchProfilesRequest, grpc.ServerStreamingServer[nodewisev1.WatchProfilesResponse]) error
	stream   func(grpc.BidiStreamingServer[nodewisev1.StreamPredictRequest, nodewisev1.StreamPredictResponse]) error
	simulate func(*nodewisev1beta1.SimulateRequest, grpc.ServerStreamingServer[nodewisev1beta1.SimulateResponse]) error

	target string
	mutex  sync.Mutex
	open   map[net.Conn]bool
	seen   []string // methods of the attempts, in order
}

func (f *fake) Predict(ctx context.Context, r *nodewisev1.PredictRequest) (*nodewisev1.PredictResponse, error) {
	return f.predict(ctx, r)
}

func (f *fake) BatchPredict(ctx context.Context, r *nodewisev1.BatchPredictRequest) (*nodewisev1.BatchPredictResponse, error) {
	return f.batch(ctx, r)
}

func (f *fake) AppendProfile(ctx context.Context, r *nodewisev1.AppendProfileRequest) (*nodewisev1.AppendProfileResponse, error) {
	return f.appended(ctx, r)
}

func (f *fake) IngestBatch(ctx context.Context, r *nodewisev1.IngestBatchRequest) (*nodewisev1.IngestBatchResponse, error) {
	return f.ingest(ctx, r)
}

func (f *fake) ListProfiles(ctx context.Context, r *nodewisev1.ListProfilesRequest) (*nodewisev1.ListProfilesResponse, error) {
	return f.list(ctx, r)
}

func (f *fake) Schedule(ctx context.Context, r *nodewisev1.ScheduleRequest) (*nodewisev1.ScheduleResponse, error) {
	return f.schedule(ctx, r)
}

func (f *fake) WatchProfiles(r *nodewisev1.WatchProfilesRequest, s grpc.ServerStreamingServer[nodewisev1.WatchProfilesResponse]) error {
	return f.watch(r, s)
}

func (f *fake) StreamPredict(s grpc.BidiStreamingServer[nodewisev1.StreamPredictRequest, nodewisev1.StreamPredictResponse]) error {
	return f.stream(s)
}

func (f *fake) Simulate(r *nodewisev1beta1.SimulateRequest, s grpc.ServerStreamingServer[nodewisev1beta1.SimulateResponse]) error {
	return f.simulate(r, s)
}

// Accept notes connections, so that cut can end them.
func (f *fake) accept(conn net.Conn) net.Conn {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.open[conn] = true
	return conn
}

// cut ends all connections, as a network or a killed server would; the server goes on.
func (f *fake) cut() {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for conn := range f.open {
		_ = conn.Close()
	}
	clear(f.open)
}

// attempts are the calls that have reached the server.
func (f *fake) attempts() int {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return len(f.seen)
}

func (f *fake) note(method string) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.seen = append(f.seen, method)
}

type noting struct {
	net.Listener
	fake *fake
}

func (n noting) Accept() (net.Conn, error) {
	conn, err := n.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return n.fake.accept(conn), nil
}

// serve starts the server for as long as the test runs.
func (f *fake) serve(t testing.TB, options ...grpc.ServerOption) *fake {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f.target, f.open = listener.Addr().String(), map[net.Conn]bool{}
	options = append(options,
		grpc.UnaryInterceptor(func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
			f.note(info.FullMethod)
			return handle(ctx, request)
		}),
		grpc.StreamInterceptor(func(server any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
			f.note(info.FullMethod)
			return handle(server, stream)
		}))
	server := grpc.NewServer(options...)
	nodewisev1.RegisterPredictionServiceServer(server, f)
	nodewisev1.RegisterProfileServiceServer(server, f)
	nodewisev1.RegisterScheduleServiceServer(server, f)
	nodewisev1beta1.RegisterSimulationServiceServer(server, f)
	go func() { _ = server.Serve(noting{listener, f}) }()
	t.Cleanup(server.Stop)
	return f
}

// client is a client of the server, closed with the test.
func (f *fake) client(t testing.TB, options ...nodewise.Option) *nodewise.Client {
	t.Helper()
	client, err := nodewise.NewClient(f.target, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// refusal is a status with details as the server gives them.
func refusal(code codes.Code, message string, details ...protoadapt.MessageV1) error {
	told, err := status.New(code, message).WithDetails(details...)
	if err != nil {
		panic(err)
	}
	return told.Err()
}

func reason(name string, meta map[string]string) *errdetails.ErrorInfo {
	return &errdetails.ErrorInfo{Reason: name, Domain: "nodewise", Metadata: meta}
}

func retryAfter(delay time.Duration) *errdetails.RetryInfo {
	return &errdetails.RetryInfo{RetryDelay: durationpb.New(delay)}
}

func pushback(ctx context.Context, milliseconds string) {
	if err := grpc.SetTrailer(ctx, metadata.Pairs("grpc-retry-pushback-ms", milliseconds)); err != nil {
		panic(err)
	}
}

func ptr[T any](value T) *T { return &value }
