package factory_test

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/clientgo/dynamicinformer"
	"github.com/tidings-go/tidings/clientgo/informers"
	"github.com/tidings-go/tidings/clientgo/metadatainformer"
)

// starter are the methods of all factories that the test needs.
type starter interface {
	Start(stop <-chan struct{})
	Shutdown()
}

// TestServerDrop checks that our own source asks the server to leave managed fields out where
// WithDrop does, unless WithoutServerDrop is given.
func TestServerDrop(t *testing.T) {
	const managed = "metadata.managedFields"
	pods := corev1.SchemeGroupVersion.WithResource("pods")
	for name, test := range map[string]struct {
		drop, off, want bool
	}{
		"nothing": {}, "WithDrop": {drop: true, want: true},
		"WithDrop and WithoutServerDrop": {drop: true, off: true}, "WithoutServerDrop": {off: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var asked, dropping atomic.Int64
				server := apisim.Options{Middleware: func(next http.Handler) http.Handler {
					return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						if strings.HasSuffix(r.URL.Path, "/pods") {
							asked.Add(1)
							if strings.Contains(r.Header.Get("Accept"), "drop="+managed) {
								dropping.Add(1)
							}
						}
						next.ServeHTTP(w, r)
					})
				}}.Start(t)
				pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}
				_, err := server.Create(t.Context(), pod)
				client, err1 := kubernetes.NewForConfig(server.Config())
				dynamicClient, err2 := dynamicinformer.NewClient(server.Config(), nil)
				metadataClient, err3 := metadatainformer.NewClient(server.Config(), nil)
				if err := errors.Join(err, err1, err2, err3); err != nil {
					t.Fatal(err)
				}
				var typed []informers.SharedInformerOption
				var asMaps []dynamicinformer.SharedInformerOption
				var partial []metadatainformer.SharedInformerOption
				if test.drop {
					typed = append(typed, informers.WithDrop(managed))
					asMaps = append(asMaps, dynamicinformer.WithDrop(managed))
					partial = append(partial, metadatainformer.WithDrop(managed))
				}
				if test.off {
					typed = append(typed, informers.WithoutServerDrop())
					asMaps = append(asMaps, dynamicinformer.WithoutServerDrop())
					partial = append(partial, metadatainformer.WithoutServerDrop())
				}
				f1 := informers.NewSharedInformerFactoryWithOptions(client, 0, typed...)
				f1.Core().V1().Pods().Informer()
				f2 := dynamicinformer.NewDynamicSharedInformerFactoryWithOptions(dynamicClient, 0, asMaps...)
				f2.ForResource(pods)
				f3 := metadatainformer.NewSharedInformerFactoryWithOptions(metadataClient, 0, partial...)
				f3.ForResource(pods)
				stop := make(chan struct{})
				for _, f := range []starter{f1, f2, f3} {
					f.Start(stop)
					synctest.Wait()
					n, with := asked.Swap(0), dropping.Swap(0)
					if n == 0 || test.want && with != n || !test.want && with != 0 {
						t.Errorf("%T: %d of %d requests have the parameter", f, with, n)
					}
				}
				close(stop)
				for _, f := range []starter{f1, f2, f3} {
					f.Shutdown()
				}
			})
		})
	}
}
