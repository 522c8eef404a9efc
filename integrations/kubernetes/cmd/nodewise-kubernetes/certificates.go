package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/config"

	"github.com/nodewise/nodewise/integrations/kubernetes/internal/certificates"
)

func certificatesCommand(flags *flag.FlagSet) func(context.Context) error {
	config.RegisterFlags(flags)
	namespace := flags.String("namespace", "nodewise-system", "namespace of the webhook and the extender")
	release := flags.String("release", "nodewise", "name of the Helm release, with which the names of the two begin")
	hosts := flags.String("hosts", "", "further names and addresses of the two, separated by commas")
	return func(ctx context.Context) error {
		kubernetes, err := config.GetConfig()
		if err != nil {
			return fmt.Errorf("the cluster's configuration cannot be read: %w", err)
		}
		found, err := client.New(kubernetes, client.Options{})
		if err != nil {
			return err
		}
		authority, err := certificates.Install(ctx, found, *namespace, *release, strings.FieldsFunc(*hosts, func(r rune) bool { return r == ',' }))
		if err != nil {
			return err
		}
		_, err = os.Stdout.Write(authority)
		return err
	}
}
