package e2e

import (
	"context"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/e2e/internal/follow"
	"github.com/tidings-go/tidings/health"
)

// TestOptionalDefinition starts optional informers of a type that is not installed. The factory
// does not wait for them, and the objects come with the type.
func TestOptionalDefinition(t *testing.T) {
	t.Parallel()
	server := newServer(t)
	client, err := dynamic.NewForConfig(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	factory, err := tidings.NewFactory(server.Config(), tidings.FactoryOptions{FailFast: true})
	if err != nil {
		t.Fatal(err)
	}
	whole, err := tidings.Dynamic(factory, widgets, tidings.Selection{Optional: true})
	if err != nil {
		t.Fatal(err)
	}
	onlyMetadata, err := tidings.Metadata(factory, widgets,
		tidings.Selection{Optional: true, Namespace: "default"})
	if err != nil {
		t.Fatal(err)
	}
	if err := factory.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer factory.Shutdown(context.WithoutCancel(t.Context())) //nolint:errcheck // no handler can block it
	if err := factory.WaitForSync(t.Context()); err != nil {
		t.Fatalf("the factory waits for an optional type: %v", err)
	}
	for _, h := range []tidings.Health{whole.Health(), onlyMetadata.Health()} {
		if h.State != health.StateNoSuchResource || !h.Synced || h.LastError == nil {
			t.Errorf("the health is %+v", h)
		}
	}
	install(t, client)
	createWidget(t, client, "a")
	made, err := client.Resource(widgets).Namespace("default").Get(t.Context(), "a",
		metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	if err := whole.WaitFor(ctx, made.GetResourceVersion()); err != nil {
		t.Fatalf("%v; the health is %+v", err, whole.Health())
	}
	if err := onlyMetadata.WaitFor(ctx, made.GetResourceVersion()); err != nil {
		t.Fatalf("%v; the health is %+v", err, onlyMetadata.Health())
	}
	if got, err := whole.Lister().Get("default/a"); err != nil || got.GetUID() != made.GetUID() {
		t.Errorf("the cache has %v, %v", got, err)
	}
	if got, err := onlyMetadata.Lister().Get("default/a"); err != nil ||
		got.GetUID() != made.GetUID() {
		t.Errorf("the cache of metadata has %v, %v", got, err)
	}
}

// TestNamespacesComeAndGo adds namespaces to running informers and removes some, under
// load.
func TestNamespacesComeAndGo(t *testing.T) {
	t.Parallel()
	server, all, churn := setting(t)
	for _, some := range [][]string{{"b", "c"}, {"a"}, {"a", "b", "c"}, {"c"}} {
		pause(t.Context(), time.Second)
		for _, f := range all {
			if len(f.Namespaces) == 0 {
				continue
			}
			if err := f.Follow(some...); err != nil {
				t.Fatalf("%s: %v", f.Name, err)
			}
		}
	}
	pause(t.Context(), time.Second)
	churn.end(t)
	some := slices.DeleteFunc(slices.Clone(all),
		func(f *follow.Follower) bool { return len(f.Namespaces) == 0 })
	if len(some) == 0 {
		t.Fatal("no follower follows some namespaces only")
	}
	settle(t, server, all)
}
