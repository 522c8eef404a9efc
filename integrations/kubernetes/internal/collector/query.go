package collector

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/prometheus/client_golang/api"
	prometheusv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"k8s.io/client-go/transport"

	"github.com/nodewise/nodewise/integrations/kubernetes/internal/jobs"
)

// Querier answers queries in PromQL as of a time.
type Querier interface {
	Query(ctx context.Context, query string, at time.Time, options ...prometheusv1.Option) (model.Value, prometheusv1.Warnings, error)
}

// Prometheus returns the API of a Prometheus at a URL. A file holds the bearer token, which is read again every minute and after a refusal; empty =
// none is sent. Another file holds the authorities of the server's certificate; empty = those of the system.
func Prometheus(address, tokenFile, authorities string) (Querier, error) {
	parsed, err := url.Parse(address)
	if err != nil || parsed.Host == "" || !strings.HasPrefix(parsed.Scheme, "http") {
		return nil, fmt.Errorf("-prometheus: %q is not the URL of a Prometheus; give one such as http://prometheus.monitoring:9090", address)
	}
	sender := &http.Client{}
	carrier, err := transport.New(&transport.Config{TLS: transport.TLSConfig{CAFile: authorities}})
	if err != nil {
		return nil, fmt.Errorf("-prometheus-ca-file: %w", err)
	}
	if tokenFile != "" {
		if parsed.Scheme != "https" {
			return nil, fmt.Errorf("-prometheus-token-file: the token would be sent in plain text to %s; give -prometheus an https URL", parsed.Redacted())
		}
		token := transport.NewCachedFileTokenSource(tokenFile)
		if _, err := token.Token(); err != nil {
			return nil, fmt.Errorf("-prometheus-token-file: %w", err)
		}
		carrier = transport.ResettableTokenSourceWrapTransport(token)(carrier)
		sender.CheckRedirect = podClient.CheckRedirect // the token is for this server alone
	}
	sender.Transport = limited{carrier}
	found, err := api.NewClient(api.Config{Address: address, Client: sender})
	if err != nil {
		return nil, err
	}
	return prometheusv1.NewAPI(found), nil
}

// limited limits replies: the queries that are read at a time may select more series than fit into memory.
type limited struct{ http.RoundTripper }

func (l limited) RoundTrip(request *http.Request) (*http.Response, error) {
	reply, err := l.RoundTripper.RoundTrip(request)
	if err == nil {
		reply.Body = http.MaxBytesReader(nil, reply.Body, mostReply)
	}
	return reply, err
}

// query returns the steps per second that a job's query yields for the window that has just ended; nil = it yields none.
func (c *Collector) query(ctx context.Context, of *job, end time.Time) (*Sample, error) {
	if c.Prometheus == nil {
		return nil, fmt.Errorf("annotation %s is given, but the collector has no -prometheus", jobs.Query)
	}
	text, err := of.query(c.Window)
	if err != nil {
		return nil, err
	}
	reply, _, err := c.Prometheus.Query(ctx, text, end, prometheusv1.WithTimeout(readTimeout))
	if err != nil {
		return nil, fmt.Errorf("annotation %s: %w", jobs.Query, err)
	}
	rate := math.NaN()
	switch reply := reply.(type) {
	case *model.Scalar:
		rate = float64(reply.Value)
	case model.Vector:
		if len(reply) > 1 {
			return nil, fmt.Errorf("annotation %s: the query yields %d series; give one that yields one, e.g. by avg()", jobs.Query, len(reply))
		}
		for _, each := range reply {
			rate = float64(each.Value)
		}
	default:
		return nil, fmt.Errorf("annotation %s: the query yields a %s; give one that yields an instant vector, e.g. by rate()", jobs.Query, reply.Type())
	}
	if !(rate > 0) || math.IsInf(rate, 0) {
		return nil, nil
	}
	return &Sample{StepsPerSecond: rate, At: end}, nil
}

// plain are names that need no escapes in any string of PromQL, as all names of pods and jobs are.
var plain = regexp.MustCompile(`^[A-Za-z0-9.-]+$`)

// query returns a job's query with the names of this job.
func (j *job) query(window time.Duration) (string, error) {
	first := j.pods[0]
	name, pods := first.Name, make([]string, len(j.pods))
	if len(j.owners) > 0 {
		name = j.owners[len(j.owners)-1].GetName()
	}
	for index, pod := range j.pods {
		pods[index] = pod.Name
	}
	for _, each := range append([]string{first.Namespace, name}, pods...) {
		if !plain.MatchString(each) {
			return "", fmt.Errorf("annotation %s: the name %q cannot be part of a query", jobs.Query, each)
		}
	}
	return strings.NewReplacer(
		"$namespace", first.Namespace, "$name", name, "$window", fmt.Sprintf("%ds", int(window.Seconds())),
		// A regular expression without a backslash, which some strings of PromQL would need twice.
		"$pods", strings.ReplaceAll(strings.Join(pods, "|"), ".", "[.]"),
	).Replace(j.annotations[jobs.Query]), nil
}
