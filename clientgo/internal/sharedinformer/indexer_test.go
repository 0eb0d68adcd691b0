package sharedinformer

import (
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// byNamespace is an index function of a program.
func byNamespace(obj any) ([]string, error) {
	if namespace := metadata(obj).GetNamespace(); namespace != "" {
		return []string{namespace}, nil
	}
	return nil, errors.New("it has no namespace")
}

func TestIndexer(t *testing.T) {
	informer := New(Options{Source: &script{},
		Indexers: cache.Indexers{cache.NamespaceIndex: byNamespace}})
	x := informer.indexer
	if _, err := x.Index(cache.NamespaceIndex, &corev1.ConfigMap{}); err == nil {
		t.Error("Index hides the error of the index function")
	}
	if err := x.AddIndexers(cache.Indexers{"": byNamespace}); err == nil {
		t.Error("an index without a name was added")
	}
	several := cache.Indexers{"none": nil}
	for n := range 50 {
		several[fmt.Sprint(n)] = byNamespace
	}
	if err := x.AddIndexers(several); err == nil {
		t.Error("an index without a function was added")
	}
	delete(several, "none")
	if err := x.AddIndexers(several); err != nil {
		t.Errorf("the indexes were added with one that was refused: %v", err)
	}
	if err := x.Replace([]any{configMap("gone", "1"), configMap("stays", "2")}, ""); err != nil {
		t.Fatal(err)
	}
	if err := x.Replace([]any{configMap("stays", "2")}, ""); err != nil {
		t.Fatal(err)
	}
	if deleted := *informer.manualDeletes.objects.Load(); len(deleted) != 1 || deleted["a/gone"] == nil {
		t.Errorf("the objects that were deleted by hand are %v", deleted)
	}
	if found, exact := x.Candidates("a", nil); !exact || len(collect(found, 1)) != 1 {
		t.Error("without a selector, the objects of the namespace are not exactly those found")
	}
	ofClientGo := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	if functions := indexFuncs(ofClientGo); len(functions) != 0 {
		t.Error("client-go's index by namespace costs an index of the store")
	}
}

func TestIsUnchanged(t *testing.T) {
	i := New(Options{Source: &script{}})
	for _, tt := range []struct {
		uid, version string
		differs      bool
		want         bool
	}{
		{uid: "u", version: "1", want: true},
		{uid: "u", version: "1", differs: true},
		{version: "1", differs: true, want: true}, // an object of a server would have a UID
		{uid: "u"},
	} {
		old, new := configMap("m", tt.version), configMap("m", tt.version)
		for _, m := range []metav1.Object{old, new} {
			m.SetUID(types.UID(tt.uid))
		}
		if tt.differs {
			new.Labels = map[string]string{"n": "2"}
		}
		if got := i.isUnchanged(old, new); got != tt.want {
			t.Errorf("%+v: is unchanged: %v", tt, got)
		}
	}
}

// elsewhere is a handler's function that is written outside of functions.
var elsewhere = func(any) {}

func TestHandlerName(t *testing.T) {
	const here = "github.com/tidings-go/tidings/clientgo/internal/sharedinformer"
	for want, handler := range map[string]cache.ResourceEventHandler{
		here + ".TestHandlerName": cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) {}, DeleteFunc: func(any) {}},
		here:                                    cache.ResourceEventHandlerFuncs{AddFunc: func(any) {}, DeleteFunc: elsewhere},
		"cache.ResourceEventHandlerFuncs":       cache.ResourceEventHandlerFuncs{},
		"struct { cache.ResourceEventHandler }": struct{ cache.ResourceEventHandler }{},
	} {
		if got := handlerName(handler); got != want {
			t.Errorf("the name is %q, want %q", got, want)
		}
	}
	if got := commonPrefix("name.func1", "name"); got != "name" {
		t.Errorf("the common prefix is %q", got)
	}
}
