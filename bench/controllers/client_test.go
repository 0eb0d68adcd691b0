package controllers

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	crclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/controller/guard"
)

var widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

// newRuntimeClient returns a client of controller-runtime for deployments and widgets.
func newRuntimeClient(config *rest.Config) (crclient.Client, error) {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(appsv1.SchemeGroupVersion.WithKind("Deployment"), meta.RESTScopeNamespace)
	mapper.Add(widgets.GroupVersion().WithKind("Widget"), meta.RESTScopeNamespace)
	return crclient.New(config, crclient.Options{Mapper: mapper})
}

// guardedRuntime is Tidings with the client of controller-runtime.
var guardedRuntime = stack{
	"Tidings with controller-runtime's client",
	func(ctx context.Context, c *rest.Config, p program) error {
		return tidingsMain(ctx, c, p, func(c *rest.Config) (client, error) {
			made, err := newRuntimeClient(c)
			return runtimeClient{made}, err
		})
	},
}

// TestC03_CallsSeeTheWritesOfControllerRuntimesClient lets calls write a status and remove a
// finalizer with that client, while events are late.
func TestC03_CallsSeeTheWritesOfControllerRuntimesClient(t *testing.T) {
	for name, stale := range map[string]func(*world, stack) float64{
		"status": staleAfterStatus, "finalizer": staleAfterFinalizer,
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				if n := stale(w, guardedRuntime); n != 0 {
					t.Errorf("%v calls saw a state older than a write before", n)
				}
			})
		})
	}
}

// closedTerm is a term that is over.
type closedTerm struct{}

var errTermOver = errors.New("the term is over")

func (closedTerm) Remaining() time.Duration { return 0 }
func (closedTerm) Err() error               { return errTermOver }
func (closedTerm) Done() <-chan struct{} {
	done := make(chan struct{})
	close(done)
	return done
}

// runtimeWrite is a write with controller-runtime's client. It keeps the answer in the object.
type runtimeWrite struct {
	name string
	send func(ctx context.Context, c crclient.Client, o object) error
}

// labelled sets a label of an object, which is a change.
func labelled(o object, value string) object {
	o.SetLabels(map[string]string{"written-by": value})
	return o
}

// before returns a patch from the present state of an object.
func before(o object) crclient.Patch { return crclient.MergeFrom(o.DeepCopyObject().(object)) }

// setReplicas changes the status of an object.
func setReplicas(o object, n int64) {
	if d, ok := o.(*appsv1.Deployment); ok {
		d.Status.Replicas = int32(n)
		return
	}
	o.(*unstructured.Unstructured).Object["status"] = map[string]any{"replicas": n}
}

// runtimeWrites are all writes of one object by that client, in the order in which they can be
// made.
var runtimeWrites = []runtimeWrite{
	{"create", func(ctx context.Context, c crclient.Client, o object) error {
		return c.Create(ctx, o)
	}},
	{"update", func(ctx context.Context, c crclient.Client, o object) error {
		return c.Update(ctx, labelled(o, "update"))
	}},
	{"patch", func(ctx context.Context, c crclient.Client, o object) error {
		patch := before(o)
		return c.Patch(ctx, labelled(o, "patch"), patch)
	}},
	{"status update", func(ctx context.Context, c crclient.Client, o object) error {
		setReplicas(o, 1)
		return c.Status().Update(ctx, o)
	}},
	{"status patch", func(ctx context.Context, c crclient.Client, o object) error {
		patch := before(o)
		setReplicas(o, 2)
		return c.Status().Patch(ctx, o, patch)
	}},
	{"apply", func(ctx context.Context, c crclient.Client, o object) error {
		gvk, err := c.GroupVersionKindFor(o)
		if err != nil {
			return err
		}
		applied := &unstructured.Unstructured{}
		applied.SetGroupVersionKind(gvk)
		applied.SetNamespace(o.GetNamespace())
		applied.SetName(o.GetName())
		applied.SetAnnotations(map[string]string{"written-by": "apply"})
		return c.Apply(ctx, crclient.ApplyConfigurationFromUnstructured(applied),
			crclient.FieldOwner("test"), crclient.ForceOwnership)
	}},
	{"delete", func(ctx context.Context, c crclient.Client, o object) error {
		uid := o.GetUID()
		return c.Delete(ctx, o, crclient.Preconditions{UID: &uid})
	}},
}

// TestC03_WritesOfControllerRuntimesClient sends each write of that client through a guard, in
// protobuf and in JSON. In a closed term the write is not sent. In a call it is recorded with the
// UID and the version that the server has after it.
func TestC03_WritesOfControllerRuntimesClient(t *testing.T) {
	widget := &unstructured.Unstructured{}
	widget.SetGroupVersionKind(widgets.GroupVersion().WithKind("Widget"))
	widget.SetNamespace(opsNamespace)
	widget.SetName("a")
	for name, k := range map[string]struct {
		object   object
		resource schema.GroupVersionResource
		encoding string
	}{
		"typed":        {deployment(opsNamespace, "a"), deployments, runtime.ContentTypeProtobuf},
		"unstructured": {widget, widgets, runtime.ContentTypeJSON},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.must(w.server.Register(apisim.Resource{Group: widgets.Group, Version: widgets.Version,
					Name: widgets.Resource, Kind: "Widget", Namespaced: true, HasStatus: true}))
				g, err := controller.NewGuard(w.config("client"), controller.GuardOptions{})
				w.must(err)
				encodings := map[string]bool{}
				config := g.Config()
				config.Wrap(recordEncodings(encodings))
				c, err := newRuntimeClient(config)
				w.must(err)
				w.checkWrites(g, c, k.object, k.resource)
				if !encodings[k.encoding] {
					t.Errorf("the client has sent %v, want %s", encodings, k.encoding)
				}
			})
		})
	}
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// recordEncodings keeps the content types of requests.
func recordEncodings(seen map[string]bool) transport.WrapperFunc {
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			seen[r.Header.Get("Content-Type")] = true
			return next.RoundTrip(r)
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// checkWrites makes all writes of an object, each first in a closed term.
func (w *world) checkWrites(
	g *guard.Guard, c crclient.Client, o object, resource schema.GroupVersionResource,
) {
	for _, write := range runtimeWrites {
		w.server.ForgetRequests()
		ctx, call := g.Begin(w.Context(), closedTerm{})
		err := write.send(ctx, c, o.DeepCopyObject().(object))
		if !errors.Is(err, guard.ErrFenced) || !errors.Is(err, errTermOver) {
			w.Errorf("%s in a closed term: the error is %v", write.name, err)
		}
		if writes, sent := call.End(), w.server.Requests(); len(writes)+len(sent) > 0 {
			w.Errorf("%s in a closed term: %v are noted, %v were sent", write.name, writes, sent)
		}

		ctx, call = g.Begin(w.Context(), nil)
		w.must(write.send(ctx, c, o))
		want := guard.Write{Resource: resource.GroupResource(), Namespace: o.GetNamespace(),
			Name: o.GetName(), UID: o.GetUID(), Gone: write.name == "delete"}
		if !want.Gone {
			stored := w.stored(resource, o)
			want.UID, want.Version = stored.GetUID(), stored.GetResourceVersion()
			if write.name == "apply" { // its answer is not kept in the object
				o.SetResourceVersion(want.Version)
			}
		}
		writes := call.End()
		if len(writes) != 1 {
			w.Fatalf("%s: %v are noted, want one write", write.name, writes)
		}
		got := guard.Write{Resource: writes[0].Resource, Namespace: writes[0].Namespace,
			Name: writes[0].Name, UID: writes[0].UID, Version: writes[0].Version,
			Gone: writes[0].Gone, Unknown: writes[0].Unknown}
		if got != want {
			w.Errorf("%s: it is noted as\n%+v, want\n%+v", write.name, got, want)
		}
	}
	n := uint64(len(runtimeWrites))
	if s := g.Stats(); s != (guard.Stats{Sent: n, Fenced: n}) {
		w.Errorf("the guard counts %+v, want %d sent and %d fenced", s, n, n)
	}
}

// stored returns the metadata of an object as the server has it.
func (w *world) stored(resource schema.GroupVersionResource, o object) metav1.Object {
	w.Helper()
	stored, err := w.server.Get(w.Context(), resource, o.GetNamespace(), o.GetName())
	w.must(err)
	return stored.(metav1.Object)
}
