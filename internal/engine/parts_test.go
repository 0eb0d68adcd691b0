package engine

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidings-go/tidings/source"
)

// withSource returns options whose parts have these sources.
func withSource(
	o Options[string], sourceOf func(namespace string) source.Source[string],
) Options[string] {
	partOf := o.Part
	o.Part = func(ctx context.Context, namespace string, scope source.Scope) Part[string] {
		p := partOf(ctx, namespace, scope)
		p.Source = sourceOf(namespace)
		return p
	}
	return o
}

// counted has received a byte for each letter of its name, which is its resource too.
type counted struct {
	oneObject
	name string
}

func (s counted) BytesReceived() uint64     { return uint64(len(s.name)) }
func (s counted) Resource() source.Resource { return source.Resource{Kind: s.name} }

func TestPartsAreAskedByNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sourceOf := func(namespace string) source.Source[string] {
			return counted{oneObject{namespace, func() {}}, "in " + namespace}
		}
		for _, row := range []struct {
			namespaces []string
			received   map[string]uint64 // by namespace; 0 if there is no watch
			kind       string
		}{
			{[]string{"a", "bb"}, map[string]uint64{"a": 4, "bb": 5, "c": 0}, "in a"},
			{nil, map[string]uint64{"a": 3, "": 3}, "in "},
		} {
			o := withSource(optionsOf(row.namespaces...), sourceOf)
			fresh, err := New(o)
			if err != nil {
				t.Fatal(err)
			}
			if r, ok := fresh.Resource(); ok {
				t.Errorf("before it runs, its resource is %v", r)
			}
			c, stop := run(t, o)
			for namespace, want := range row.received {
				if h := c.WatchOf(namespace); h.Bytes != want || (h.State == "") != (want == 0) {
					t.Errorf("the watch of %q is %+v", namespace, h)
				}
			}
			if r, ok := c.Resource(); !ok || r.Kind != row.kind {
				t.Errorf("the resource is %v, %v", r, ok)
			}
			if err := stop(); err != nil {
				t.Error(err)
			}
		}
		c, stop := run(t, optionsOf())
		if r, ok := c.Resource(); ok {
			t.Errorf("a source that does not say has the resource %v", r)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestReflectorThatDoesNotRunIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := optionsOf("a", "b")
		partOf := o.Part
		o.Part = func(ctx context.Context, namespace string, scope source.Scope) Part[string] {
			p := partOf(ctx, namespace, scope)
			if namespace == "b" {
				p.Reflector.PageSize = -1
			}
			return p
		}
		var reported []error
		o.OnNotRun = func(err error) { reported = append(reported, err) }
		c, stop := run(t, o)
		if len(reported) != 1 || c.Lacks("a") || !c.Lacks("b") {
			t.Errorf("reported %v; a is listed: %v, b: %v", reported, !c.Lacks("a"), !c.Lacks("b"))
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestTurnOfATransformIsOdd while it runs.
func TestTurnOfATransformIsOdd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := optionsOf()
		partOf := o.Part
		o.Part = func(ctx context.Context, namespace string, scope source.Scope) Part[string] {
			p := partOf(ctx, namespace, scope)
			p.Reflector.Transform = func(state string) (string, error) {
				time.Sleep(time.Minute)
				return state, nil
			}
			return p
		}
		c, stop := run(t, o)
		for _, want := range []uint64{1, 2} {
			if _, got := c.Turns(); got != want {
				t.Errorf("the turn is %d, want %d", got, want)
			}
			time.Sleep(2 * time.Minute)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// clusterScoped is a source of a type whose objects have no namespace. The answer that says so takes
// a second.
type clusterScoped struct{ oneObject }

func (s clusterScoped) List(ctx context.Context, o source.ListOptions) (source.Page[string], error) {
	if s.namespace != "" {
		time.Sleep(time.Second)
		return source.Page[string]{}, source.ErrWrongScope
	}
	return s.oneObject.List(ctx, o)
}

// TestP13_ScopeIsFollowedOnce: the parts of two namespaces find that the type has none.
func TestP13_ScopeIsFollowedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var begun []string
		o := withSource(optionsOf("a", "b"), func(namespace string) source.Source[string] {
			mu.Lock()
			defer mu.Unlock()
			begun = append(begun, namespace)
			return clusterScoped{oneObject{namespace, func() {}}}
		})
		o.NamespacesByDefault = true
		c, stop := run(t, o)
		time.Sleep(time.Minute)
		mu.Lock()
		ran := slices.Sorted(slices.Values(begun))
		mu.Unlock()
		if !slices.Equal(ran, []string{"", "a", "b"}) || len(c.Namespaces()) > 0 || !c.InSync() {
			t.Errorf("parts of %q have run, the namespaces are %q; in sync: %v", ran, c.Namespaces(), c.InSync())
		}
		if err := c.AddNamespace("c"); !errors.Is(err, ErrClusterScoped) {
			t.Errorf("AddNamespace: %v", err)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}
