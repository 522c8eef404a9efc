package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/nodewise/nodewise/integrations/kubernetes/internal/load"
)

func loadCommand(flags *flag.FlagSet) func(context.Context) error {
	var settings load.Settings
	flags.StringVar(&settings.URL, "url", "https://127.0.0.1:9443", "URL of the extender")
	flags.Float64Var(&settings.Rate, "rate", 1000, "requests per second, alternating between filter and prioritize")
	flags.DurationVar(&settings.Duration, "duration", 10*time.Second, "duration of the load")
	flags.IntVar(&settings.DevicesPerPod, "devices-per-pod", 8, "accelerators of each pod")
	flags.IntVar(&settings.NodesPerJob, "nodes-per-job", 4, "nodes of each job")
	flags.StringVar(&settings.Settings, "settings", "", "how the jobs run, as JSON of nodewise.v1.ConfigurationSettings")
	profiles := flags.String("profiles", "", "names of profiles, separated by commas")
	nodes := flags.String("nodes", "", "names of nodes in each request, separated by commas")
	authorities := flags.String("ca", "", "file of the authorities that signed the extender's certificate")
	return func(ctx context.Context) error {
		collectRarely()
		settings.Profiles, settings.Nodes = strings.Split(*profiles, ","), strings.Split(*nodes, ",")
		settings.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
		if *authorities != "" {
			text, err := os.ReadFile(*authorities)
			if err != nil {
				return err
			}
			settings.TLS.RootCAs = x509.NewCertPool()
			if !settings.TLS.RootCAs.AppendCertsFromPEM(text) {
				return fmt.Errorf("%s holds no certificate in PEM form", *authorities)
			}
		}
		result, err := load.Run(ctx, settings)
		if err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(result)
	}
}
