package ask

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var (
	questions = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "nodewise_kubernetes_questions_total",
		Help: "Requests for curves by outcome: answered, stale, refused, unreachable, unanswered (no answer yet), dropped (too many questions at once).",
	}, []string{"outcome"})
	open = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "nodewise_kubernetes_breaker_open", Help: "1 while Nodewise does not answer and is only sent probes.",
	})
	opened = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "nodewise_kubernetes_breaker_opened_total", Help: "Times that the breaker opened because Nodewise did not answer.",
	})
	seconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "nodewise_kubernetes_call_seconds", Help: "Duration of calls to Nodewise.", Buckets: prometheus.ExponentialBuckets(0.001, 2, 14),
	}, []string{"result"})
	outcomes = map[string]prometheus.Counter{}
)

func init() {
	metrics.Registry.MustRegister(questions, open, opened, seconds)
	for _, outcome := range []string{"answered", "stale", "refused", "unreachable", "unanswered", "dropped"} {
		outcomes[outcome] = questions.WithLabelValues(outcome)
	}
}

func count(outcome string) { outcomes[outcome].Inc() }

func took(duration time.Duration, err error) {
	result := "ok"
	if err != nil {
		result = "error"
	}
	seconds.WithLabelValues(result).Observe(duration.Seconds())
}

func recordBreaker(isOpen bool) {
	if isOpen {
		open.Set(1)
		opened.Inc()
	} else {
		open.Set(0)
	}
}
