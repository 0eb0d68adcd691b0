package sharedinformer

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
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
	if keys := informer.manualWrites.keys; len(keys) != 2 || !keys["a/gone"].deleted || keys["a/stays"].deleted {
		t.Errorf("the keys that were written by hand are %v", keys)
	}
	if found, exact := x.Candidates("a", nil); !exact || len(collect(found, 1)) != 1 {
		t.Error("without a selector, the objects of the namespace are not exactly those found")
	}
	ofClientGo := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	if functions := indexFuncs(ofClientGo); len(functions) != 0 {
		t.Error("client-go's index by namespace costs an index of the store")
	}
}

// TestIndexIsAddedWhileTheProgramWrites: an index function that fails for a cached object, as the
// index is added, is no failure of a write by hand that waits for it.
func TestIndexIsAddedWhileTheProgramWrites(t *testing.T) {
	handlers := utilruntime.ErrorHandlers
	defer func() { utilruntime.ErrorHandlers = handlers }()
	utilruntime.ErrorHandlers = nil // client-go's handler sleeps in a bubble
	synctest.Test(t, func(t *testing.T) {
		x := New(Options{Source: &script{}}).indexer
		if err := x.Add(configMap("bad", "1")); err != nil {
			t.Fatal(err)
		}
		goesOn := make(chan struct{})
		var group sync.WaitGroup
		group.Go(func() {
			err := x.AddIndexers(cache.Indexers{"n": func(obj any) ([]string, error) {
				if metadata(obj).GetName() == "bad" {
					<-goesOn
					return nil, errors.New("refused")
				}
				return nil, nil
			}})
			if err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		group.Go(func() {
			defer func() {
				if value := recover(); value != nil {
					t.Errorf("the write panicked: %v", value)
				}
			}()
			if err := x.Add(configMap("good", "1")); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		close(goesOn)
		group.Wait()
	})
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
