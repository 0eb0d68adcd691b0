package e2e

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/e2e/internal/follow"
)

// dropParameter asks a server to leave managed fields out.
const dropParameter = ";drop=metadata.managedFields"

// TestDropParameter asks a server that does not have the feature ManagedFieldsOptOut to leave managed
// fields out. It ignores that, in lists and watches of built-in and custom types, in protobuf, in
// JSON, and of metadata alone. The informers have the objects without the fields.
func TestDropParameter(t *testing.T) {
	t.Parallel()
	server := newServer(t)
	client, err1 := kubernetes.NewForConfig(server.Config())
	maps, err2 := dynamic.NewForConfig(server.Config())
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	install(t, maps)
	createWidget(t, maps, "first") // which waits until the type is served
	labelledWidget(t, maps, "a")
	configMaps := client.CoreV1().ConfigMaps("default")
	made, err := configMaps.Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{"n": "1"},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(made.ManagedFields) == 0 {
		t.Fatal("the server keeps no managed fields")
	}
	var sent dropped
	config := server.Config()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return acceptNoter{next, &sent}
	})
	factory, err := tidings.NewFactory(config, tidings.FactoryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s := tidings.Selection{Namespace: "default", Drop: []string{"metadata.managedFields"}}
	typed, err1 := tidings.For[*corev1.ConfigMap](factory, s)
	asMaps, err2 := tidings.Dynamic(factory, follow.ConfigMaps, s)
	custom, err3 := tidings.Dynamic(factory, widgets, s)
	partial, err4 := tidings.Metadata(factory, widgets, s)
	if err := errors.Join(err1, err2, err3, err4, factory.Start(t.Context())); err != nil {
		t.Fatal(err)
	}
	defer factory.Shutdown(context.WithoutCancel(t.Context())) //nolint:errcheck // no handler can block it
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	if err := factory.WaitForSync(ctx); err != nil {
		t.Fatal(err)
	}
	made.Data["n"] = "2"
	changed, err := configMaps.Update(ctx, made, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	widget := labelledWidget(t, maps, "b")
	for _, err := range []error{
		typed.WaitFor(ctx, changed.ResourceVersion), asMaps.WaitFor(ctx, changed.ResourceVersion),
		custom.WaitFor(ctx, widget.GetResourceVersion()), partial.WaitFor(ctx, widget.GetResourceVersion()),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}

	changed.ManagedFields, changed.TypeMeta = nil, metav1.TypeMeta{}
	if got, err := typed.Lister().Get("default/a"); err != nil || !reflect.DeepEqual(got, changed) {
		t.Errorf("the typed object is %+v, %v, want %+v", got, err, changed)
	}
	widget.SetManagedFields(nil)
	if got, err := custom.Lister().Get("default/b"); err != nil || !reflect.DeepEqual(got, widget) {
		t.Errorf("the custom object is %+v, %v, want %+v", got, err, widget)
	}
	if got, err := asMaps.Lister().Get("default/a"); err != nil || got.GetManagedFields() != nil ||
		got.GetUID() != changed.UID || got.GetResourceVersion() != changed.ResourceVersion {
		t.Errorf("as a map, the object is %+v, %v", got, err)
	}
	for _, name := range []string{"default/a", "default/b"} {
		if got, err := partial.Lister().Get(name); err != nil || got.ManagedFields != nil || got.UID == "" {
			t.Errorf("the metadata of %s is %+v, %v", name, got, err)
		}
	}
	sent.check(t)

	for _, path := range []string{"/api/v1/namespaces/default/configmaps", "/apis/example.com/v1/namespaces/default/widgets"} {
		raw, err := client.RESTClient().Get().AbsPath(path).
			SetHeader("Accept", "application/json"+dropParameter).DoRaw(ctx)
		if err != nil || !strings.Contains(string(raw), `"managedFields"`) {
			t.Errorf("the server does not ignore the parameter: %v, %s", err, raw)
		}
	}
}

// labelledWidget creates a widget with a field that has a manager.
func labelledWidget(t *testing.T, client dynamic.Interface, name string) *unstructured.Unstructured {
	t.Helper()
	widget := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget",
		"metadata": map[string]any{"name": name, "labels": map[string]any{"n": "1"}},
	}}
	made, err := client.Resource(widgets).Namespace("default").Create(t.Context(), widget,
		metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// dropped counts lists and watches with the parameter, and notes what else was sent or answered.
type dropped struct {
	mu             sync.Mutex
	lists, watches int
	others         []string
}

func (d *dropped) check(t *testing.T) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lists+d.watches < 4 || len(d.others) > 0 {
		t.Errorf("%d lists and %d watches had the parameter; others: %q", d.lists, d.watches, d.others)
	}
}

// acceptNoter notes the Accept headers of requests for objects.
type acceptNoter struct {
	next http.RoundTripper
	sent *dropped
}

func (f acceptNoter) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := f.next.RoundTrip(r)
	accept, query := r.Header.Get("Accept"), r.URL.Query()
	if !strings.HasSuffix(r.URL.Path, "/configmaps") && !strings.HasSuffix(r.URL.Path, "/widgets") || err != nil {
		return answer, err
	}
	f.sent.mu.Lock()
	defer f.sent.mu.Unlock()
	clauses := strings.Count(accept, ",") + 1
	switch {
	case strings.Count(accept, dropParameter) != clauses || answer.StatusCode != http.StatusOK:
		f.sent.others = append(f.sent.others, r.URL.String()+" as "+accept+": "+answer.Status)
	case query.Get("watch") == "true":
		f.sent.watches++
	default:
		f.sent.lists++
	}
	return answer, err
}
