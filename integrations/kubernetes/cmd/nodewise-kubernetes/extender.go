package main

import (
	"context"
	"crypto/tls"
	"flag"
	"net"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/nodewise/nodewise/integrations/kubernetes/internal/extender"
)

func extenderCommand(flags *flag.FlagSet) func(context.Context) error {
	options, serving := commonFlags(flags), servingFlags(flags, "9443")
	flags.DurationVar(&options.settings.Patience, "patience", 30*time.Millisecond, "longest wait of kube-scheduler for the first answer about a job; must be below its httpTimeout")
	return func(ctx context.Context) error {
		collectRarely()
		asker, err := options.asker(ctx)
		if err != nil {
			return err
		}
		config, watcher, err := serving.tls()
		if err != nil {
			return err
		}
		found, err := options.manager(manager.Options{Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{
			&corev1.Node{}: {Transform: extender.Trim}, &corev1.Pod{}: {Transform: extender.Trim},
		}}})
		if err != nil {
			return err
		}
		cluster := extender.NewCluster()
		if err := cluster.Watch(ctx, found.GetCache()); err != nil {
			return err
		}
		if err := found.AddReadyzCheck("cache", synced(ctx, found.GetCache())); err != nil {
			return err
		}
		if err := found.Add(watcher); err != nil {
			return err
		}
		listener, err := net.Listen("tcp", serving.listen)
		if err != nil {
			return err
		}
		server := &http.Server{Handler: extender.Handler(cluster, asker), ReadHeaderTimeout: 5 * time.Second, IdleTimeout: 2 * time.Minute}
		if err := found.Add(&manager.Server{Name: "extender", Server: server, Listener: tls.NewListener(listener, config)}); err != nil {
			return err
		}
		return found.Start(ctx)
	}
}
