package contract_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
)

var gauges = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

// gauge is a custom type whose definition has no schema.
type gauge struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Size int          `json:"size"`
		Due  *metav1.Time `json:"due,omitempty"`
	} `json:"spec"`
}

func (g *gauge) DeepCopyObject() runtime.Object {
	out := *g
	g.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return &out
}

type gaugeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []gauge `json:"items"`
}

func (l *gaugeList) DeepCopyObject() runtime.Object {
	out := *l
	out.Items = slices.Clone(l.Items)
	return &out
}

// gaugeScheme knows gauges and the core types.
func gaugeScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	corev1.AddToScheme(scheme) //nolint:errcheck // it knows no other types yet
	scheme.AddKnownTypeWithName(gauges.GroupVersion().WithKind("Widget"), &gauge{})
	scheme.AddKnownTypeWithName(gauges.GroupVersion().WithKind("WidgetList"), &gaugeList{})
	return scheme
}

// gauged is an informer of gauges, some of whose states cannot be decoded.
type gauged struct {
	*testing.T
	server   *apisim.Server
	informer *tidings.Informer[*gauge]
	ctx      context.Context
	slots    *tidings.Slots
}

const noSize = "many"

// set creates an object, or gives it another size: a number can be decoded, a text cannot.
func (g *gauged) set(key string, size any) *unstructured.Unstructured {
	g.Helper()
	namespace, name, _ := strings.Cut(key, "/")
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget",
		"metadata": map[string]any{"namespace": namespace, "name": name}, "spec": map[string]any{"size": size},
	}}
	if size == "due" {
		u.Object["spec"] = map[string]any{"due": "soon"}
	}
	made, err := g.server.Create(g.Context(), u)
	if err != nil {
		got, getErr := g.server.Get(g.Context(), gauges, namespace, name)
		g.must(getErr)
		u.SetResourceVersion(got.(*unstructured.Unstructured).GetResourceVersion())
		made, err = g.server.Update(g.Context(), u)
	}
	g.must(err)
	return made.(*unstructured.Unstructured)
}

// setInSlotOfItsOwn creates an object in a slot that no cached object is in, and returns the slot.
func (g *gauged) setInSlotOfItsOwn(key string, size any) tidings.SlotSet {
	g.Helper()
	var others tidings.SlotSet
	for _, o := range g.informer.Lister().All() {
		others.Add(tidings.ByUID.Of(string(o.GetUID()), ""))
	}
	for {
		n := tidings.ByUID.Of(string(g.set(key, size).GetUID()), "")
		if !others.Has(n) {
			var own tidings.SlotSet
			own.Add(n)
			return own
		}
		g.delete(key)
	}
}

func (g *gauged) delete(key string) {
	g.Helper()
	namespace, name, _ := strings.Cut(key, "/")
	_, err := g.server.Delete(g.Context(), gauges, namespace, name)
	g.must(err)
}

func (g *gauged) must(err error) {
	g.Helper()
	if err != nil {
		g.Fatal(err)
	}
}

// relist ends the watch so that the informer lists again.
func (g *gauged) relist() {
	g.Helper()
	lists := g.informer.Health().Lists
	g.server.Inject(apisim.Match{Verb: "watch"}.Nth(1), apisim.Fail(0, 410))
	g.server.CutConnections()
	time.Sleep(time.Minute)
	if g.informer.Health().Lists == lists {
		g.Error("the informer did not list again")
	}
}

// start starts an informer of slots.
func (g *gauged) start(o tidings.FactoryOptions) {
	g.Helper()
	o.Scheme = gaugeScheme()
	o.Logger = slog.New(slog.DiscardHandler)
	factory, err := tidings.NewFactory(g.server.Config(), o)
	g.must(err)
	g.slots = tidings.NewSlots(tidings.ByUID, tidings.AllSlots())
	g.informer, err = tidings.For[*gauge](factory, tidings.Selection{Slots: g.slots})
	g.must(err)
	var stop context.CancelFunc
	g.ctx, stop = context.WithCancel(g.Context())
	g.Cleanup(func() {
		stop()
		g.must(factory.Shutdown(context.Background()))
	})
	g.must(factory.Start(g.ctx))
	ctx, cancel := context.WithTimeout(g.ctx, time.Minute)
	defer cancel()
	g.must(g.informer.WaitForSync(ctx))
}

// expect compares the cache, and the objects that health names: their number and the first.
func (g *gauged) expect(undecodable int, first, want string) {
	g.Helper()
	time.Sleep(time.Second)
	synctest.Wait()
	var got []string
	for key, o := range g.informer.Lister().All() {
		got = append(got, fmt.Sprintf("%s=%d", key, o.Spec.Size))
	}
	if text := strings.Join(got, " "); text != want {
		g.Errorf("the cache has %q, want %q", text, want)
	}
	h := g.informer.Health()
	text := fmt.Sprint(h.LastDropped)
	if h.Undecodable != undecodable || h.State != tidings.StateWatching || !h.Synced {
		g.Errorf("%d objects cannot be decoded, want %d; state %s, %v", h.Undecodable, undecodable, h.State, h.LastError)
	}
	if undecodable > 0 && (!strings.Contains(text, "object "+first+":") || !strings.Contains(text, "spec.")) {
		g.Errorf("health says %q: it does not name %s and its field", text, first)
	}
	if undecodable == 0 && h.LastDropped != nil {
		g.Errorf("health does not forget: %v", h.LastDropped)
	}
}
