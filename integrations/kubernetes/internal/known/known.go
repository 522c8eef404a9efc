// Package known starts controllers of kinds when the cluster knows them, so that operators may be installed at any time.
package known

import (
	"context"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const pause = 30 * time.Second

// Watch starts a controller for each kind as soon as the cluster knows it, and looks for newly installed kinds from time to time. Name is the
// task; the controller reconciles objects for which concerns is true, several of them concurrently.
func Watch(all manager.Manager, name string, kinds []schema.GroupVersionKind, concerns func(client.Object) bool, of func(schema.GroupVersionKind) reconcile.Reconciler) error {
	return all.Add(manager.RunnableFunc(func(ctx context.Context) error {
		waiting := slices.Clone(kinds)
		for {
			for index := 0; index < len(waiting); {
				kind := waiting[index]
				if _, err := all.GetRESTMapper().RESTMapping(kind.GroupKind(), kind.Version); err != nil {
					index++
					continue
				}
				if err := start(all, name, kind, concerns, of(kind)); err != nil {
					return err
				}
				waiting = slices.Delete(waiting, index, index+1)
			}
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(pause):
			}
		}
	}))
}

func start(all manager.Manager, name string, kind schema.GroupVersionKind, concerns func(client.Object) bool, of reconcile.Reconciler) error {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	again := true
	return ctrl.NewControllerManagedBy(all).Named(name+"-"+strings.ToLower(kind.GroupKind().String()+"-"+kind.Version)).
		For(object, builder.WithPredicates(predicate.NewPredicateFuncs(concerns))).
		WithOptions(controller.Options{SkipNameValidation: &again, MaxConcurrentReconciles: 4}).Complete(of)
}
