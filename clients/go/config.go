package nodewise

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	nodewisev1 "github.com/nodewise/nodewise/clients/go/gen/nodewise/v1"
)

// serviceConfigFile is the one file that clients of all languages share: which calls are retried, and how long each may last.
//
//go:embed nodewise_grpc_service_config.json
var serviceConfigFile []byte

const (
	// otherTimeout is the deadline of calls that the file does not name, streamTimeout that of StreamPredict as a whole.
	otherTimeout  = 10 * time.Second
	streamTimeout = 600 * time.Second
)

// retryPolicy says how often a call is tried and how long is waited in between.
type retryPolicy struct {
	attempts      int
	initial, most time.Duration
	multiplier    float64
}

// serviceConfig is what the file says.
type serviceConfig struct {
	// retries is the file as gRPC takes it, without deadlines: gRPC would cut calls whose callers allow more.
	retries  string
	timeouts map[string]time.Duration // by full method name
	policies map[string]retryPolicy   // by full method name; absent = never tried again
}

var readServiceConfig = sync.OnceValue(func() serviceConfig {
	config, err := parseServiceConfig(serviceConfigFile)
	if err != nil {
		panic(fmt.Sprintf("nodewise_grpc_service_config.json, which is part of this package: %v", err))
	}
	return config
})

func parseServiceConfig(file []byte) (serviceConfig, error) {
	var whole map[string]any
	var parts struct {
		MethodConfig []struct {
			Name        []struct{ Service, Method string }
			Timeout     string
			RetryPolicy *struct {
				MaxAttempts                int
				InitialBackoff, MaxBackoff string
				BackoffMultiplier          float64
			}
		}
	}
	config := serviceConfig{
		timeouts: map[string]time.Duration{nodewisev1.PredictionService_StreamPredict_FullMethodName: streamTimeout},
		policies: map[string]retryPolicy{},
	}
	if err := errors.Join(json.Unmarshal(file, &whole), json.Unmarshal(file, &parts)); err != nil {
		return config, err
	}
	var wrong error
	seconds := func(text string) time.Duration {
		duration, err := time.ParseDuration(text)
		wrong = errors.Join(wrong, err)
		return duration
	}
	for _, part := range parts.MethodConfig {
		for _, name := range part.Name {
			method := "/" + name.Service + "/" + name.Method
			if part.Timeout != "" {
				config.timeouts[method] = seconds(part.Timeout)
			}
			if given := part.RetryPolicy; given != nil {
				config.policies[method] = retryPolicy{given.MaxAttempts, seconds(given.InitialBackoff), seconds(given.MaxBackoff), given.BackoffMultiplier}
			}
		}
	}
	methods, _ := whole["methodConfig"].([]any)
	for _, entry := range methods {
		if fields, ok := entry.(map[string]any); ok {
			delete(fields, "timeout")
		}
	}
	text, err := json.Marshal(whole)
	config.retries = string(text)
	return config, errors.Join(wrong, err)
}
