package work

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/bench/internal/feed"
	"github.com/tidings-go/tidings/bench/internal/stack"
)

// liar is a stack whose informers do one thing wrong.
type liar struct {
	stack.Stack
	wrong func(stack.Informer) stack.Informer
}

func (l liar) FromMemory(f *feed.Feed, o stack.Options) (stack.Informer, error) {
	informer, err := l.Stack.FromMemory(f, o)
	return l.wrong(informer), err
}

// short has one object too few in every list.
type short struct{ stack.Informer }

func (s short) All() int { return s.Informer.All() - 1 }
func (s short) Len() int { return s.Informer.Len() - 1 }

// twice tells a handler of every object twice.
type twice struct{ stack.Informer }

func (t twice) AddHandler(h stack.Handler) error {
	add := h.Add
	h.Add = func(o metav1.Object) { add(o); add(o) }
	return t.Informer.AddHandler(h)
}

// TestLies asks that workloads find out what a stack does wrong.
func TestLies(t *testing.T) {
	for _, test := range []struct {
		name  string
		w     Work
		read  string
		wrong func(stack.Informer) stack.Informer
		says  string
	}{
		{"a list without an object", reads{}, "all", func(i stack.Informer) stack.Informer { return short{i} }, "did not find the 2000 objects"},
		{"a cache without an object", idle{}, "", func(i stack.Informer) stack.Informer { return short{i} }, "9 objects are cached, want 10"},
		{"a handler told twice", idle{}, "", func(i stack.Informer) stack.Informer { return twice{i} }, "were told 400 times, want 200"},
	} {
		t.Run(test.name, func(t *testing.T) {
			native, err := stack.ByName(stack.Native)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range test.w.Cases(Tiny) {
				if c.Read != test.read {
					continue
				}
				if _, err := test.w.Run(t.Context(), Run{Case: c, Stack: liar{native, test.wrong}}); err == nil || !strings.Contains(err.Error(), test.says) {
					t.Errorf("the error is %v; it should say %q", err, test.says)
				}
			}
		})
	}
}

// TestViewCatchesUp asks when a view counts as like another.
func TestViewCatchesUp(t *testing.T) {
	object := func(name, version string) metav1.Object {
		return &metav1.ObjectMeta{Name: name, ResourceVersion: version}
	}
	goal := newView()
	told := goal.handler("", func() {})
	told.Add(object("a", "1"))
	told.Update(nil, object("a", "2"))
	told.Add(object("b", "3"))
	told.Delete(object("b", "4"))

	late := newView()
	tell := late.handler("", func() {})
	tell.Add(object("a", "1"))
	late.hold()
	go func() {
		tell.Update(nil, object("a", "2"))
		tell.Add(object("b", "3"))
		tell.Delete(object("b", "4"))
	}()
	if err := late.catchUp(t.Context(), goal, false); err != nil {
		t.Error(err)
	}

	fewer := newView()
	fewer.handler("", func() {}).Add(object("a", "2"))
	fewer.hold()
	if err := fewer.catchUp(t.Context(), goal, true); err != nil {
		t.Error(err)
	}
}
