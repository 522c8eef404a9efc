// Command estimator is a complete Nodewise estimator in Go: throughput by Amdahl's law, behind EstimatorService.
//
//	go run ./examples/estimator -listen unix:///tmp/amdahl.sock
//
// and in nodewise.toml
//
//	[estimators]
//	amdahl-go = "unix:///tmp/amdahl.sock"
//
// With n workers a sample costs serial + parallel / n seconds (G. M. Amdahl, AFIPS Spring Joint Computer Conference,
// 1967). Both constants are fitted to the observations of a profile, all of one device in one sync mode.
package main

import (
	"context"
	"crypto/rand"
	"flag"
	"fmt"
	"log"
	"math/big"
	"net"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	nodewisepluginv1 "github.com/nodewise/nodewise/clients/go/gen/nodewise/plugin/v1"
)

const name = "amdahl-go"

// server keeps the fitted models until they are released. Their numbers start at random, so that a restarted server
// does not take an earlier model for its own.
type server struct {
	nodewisepluginv1.UnimplementedEstimatorServiceServer
	version  string
	expected float64
	instance string

	mutex  sync.Mutex
	next   int64
	models map[int64]model
}

func newServer(version string, expected float64) (*server, error) {
	first, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return nil, err
	}
	return &server{
		version: version, expected: expected, instance: rand.Text(), next: first.Int64(), models: map[int64]model{},
	}, nil
}

// ListEstimators says what this server has. `instance` is new with every start, as the models are gone then.
func (s *server) ListEstimators(
	context.Context, *nodewisepluginv1.ListEstimatorsRequest,
) (*nodewisepluginv1.ListEstimatorsResponse, error) {
	return &nodewisepluginv1.ListEstimatorsResponse{
		Instance: s.instance,
		Estimators: []*nodewisepluginv1.Estimator{{
			Name:         name,
			Version:      s.version,
			Description:  "Amdahl's law in Go, fitted to observations with two or more numbers of workers",
			Capabilities: []string{"observations"},
		}},
	}, nil
}

// Assess is cheap: it is asked for every new question, before anything is fitted.
func (s *server) Assess(_ context.Context, request *nodewisepluginv1.AssessRequest) (*nodewisepluginv1.AssessResponse, error) {
	runs := observed(request.GetEvidence().GetProfile())
	if problem := runs.missing(); problem != nil {
		return &nodewisepluginv1.AssessResponse{Assessment: &nodewisepluginv1.Assessment{Refusal: problem, OfProfile: true}}, nil
	}
	evidence := fmt.Sprintf("%d observations, with %d numbers of workers", len(runs), runs.counts())
	// A curve through points, without a model of the parts of a step: "auto" prefers estimators that have one.
	assessment := &nodewisepluginv1.Assessment{Evidence: []string{evidence}, Strength: 0.2}
	if s.expected > 0 { // "auto" goes by it, until runs tell better
		assessment.Strength = 1
		assessment.ExpectedLogErrors = []float64{s.expected}
	}
	response := &nodewisepluginv1.AssessResponse{Assessment: assessment}
	if fitted, found := s.model(request.GetModel()); found { // the question that comes next, in the same call
		response.Predicted = &nodewisepluginv1.PredictResponse{Predictions: fitted.predict(request.GetConfigurations())}
	}
	return response, nil
}

// Fit keeps a model under a number.
func (s *server) Fit(_ context.Context, request *nodewisepluginv1.FitRequest) (*nodewisepluginv1.FitResponse, error) {
	runs := observed(request.GetEvidence().GetProfile())
	if problem := runs.missing(); problem != nil {
		return nil, refused(problem)
	}
	fitted := fit(runs)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.next++
	s.models[s.next] = fitted
	return &nodewisepluginv1.FitResponse{Model: &nodewisepluginv1.KeptObject{Number: s.next, Type: "model"}}, nil
}

// Predict answers all rows at once, and the same rows always alike.
func (s *server) Predict(_ context.Context, request *nodewisepluginv1.PredictRequest) (*nodewisepluginv1.PredictResponse, error) {
	fitted, found := s.model(request.GetModel())
	if !found {
		return nil, status.Error(codes.NotFound, "the model is no longer in memory") // the server fits it again
	}
	return &nodewisepluginv1.PredictResponse{Predictions: fitted.predict(request.GetConfigurations())}, nil
}

// Release frees models.
func (s *server) Release(_ context.Context, request *nodewisepluginv1.ReleaseRequest) (*nodewisepluginv1.ReleaseResponse, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, number := range request.GetModels() {
		delete(s.models, number)
	}
	return &nodewisepluginv1.ReleaseResponse{}, nil
}

func (s *server) model(number int64) (model, bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	fitted, found := s.models[number]
	return fitted, found
}

func run() error {
	listen := flag.String("listen", "unix:///tmp/amdahl.sock", "unix:///path or host:port")
	version := flag.String("version", "1.0.0", "version to report")
	expected := flag.Float64("expected-error", 0, "expected error |ln(predicted / measured)| to report; 0 = none")
	certificate := flag.String("certificate", "", "PEM file of the server's certificate; empty = no TLS")
	key := flag.String("key", "", "PEM file of the key of the certificate")
	flag.Parse()
	network, address := "tcp", *listen
	if path, found := strings.CutPrefix(*listen, "unix://"); found {
		network, address = "unix", path
		if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	var options []grpc.ServerOption
	if *certificate != "" {
		transport, err := credentials.NewServerTLSFromFile(*certificate, *key)
		if err != nil {
			return err
		}
		options = append(options, grpc.Creds(transport))
	}
	estimators, err := newServer(*version, *expected)
	if err != nil {
		return err
	}
	var config net.ListenConfig
	listener, err := config.Listen(context.Background(), network, address)
	if err != nil {
		return err
	}
	service := grpc.NewServer(options...)
	nodewisepluginv1.RegisterEstimatorServiceServer(service, estimators)
	stop, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer cancel()
	go func() {
		<-stop.Done()
		service.GracefulStop()
	}()
	log.Printf("%s %s answers at %s", name, *version, *listen)
	return service.Serve(listener)
}

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}
