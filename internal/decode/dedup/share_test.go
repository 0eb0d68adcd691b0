package dedup

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tidings-go/tidings/internal/decode/dedup/deduptest"
)

// keenSharer makes every idle worker for objects of a type try to share everything and
// keep all that is new.
func keenSharer(t *testing.T, s *Sharer, typ reflect.Type) {
	t.Helper()
	plan := s.table.plans.plan(typ, cut{}, inMemory)
	if plan.err != nil {
		t.Fatal(plan.err)
	}
	for _, w := range plan.sharers.workers[s.o.Sharing] {
		w.objectStats = fieldStats{balance: mostBalance}
		for i := range w.stats {
			w.stats[i] = keenStats
		}
	}
}

// shareOne shares an object and checks that the result is the same object, and that the given
// object is as it was.
func shareOne(t *testing.T, s *Sharer, given runtime.Object) runtime.Object {
	t.Helper()
	before, had := given.DeepCopyObject(), memories(reflect.ValueOf(given), nil)
	got := s.Share(given).(runtime.Object)
	if !reflect.DeepEqual(given, before) || !reflect.DeepEqual(memories(reflect.ValueOf(given), nil), had) {
		t.Fatalf("the object that was given was written to:\nbefore: %.4000v\nafter:  %.4000v", fmt.Sprintf("%#v", before), fmt.Sprintf("%#v", given))
	}
	if !reflect.DeepEqual(given, got) {
		t.Fatalf("given: %.4000v\ngot:   %.4000v", fmt.Sprintf("%#v", given), fmt.Sprintf("%#v", got))
	}
	return got
}

// TestShareEveryType shares random objects of every type of client-go's scheme, each of
// them several times as a new copy. The result is equal, the given object is not written to,
// and nothing of it is in the object of another one.
func TestShareEveryType(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	f := deduptest.New(seed)
	table := new(Table)
	shared := 0
	for _, typ := range everyType(t) {
		t.Run(typ.String(), func(t *testing.T) {
			s := NewSharer(table, SharerOptions{})
			if err := table.plans.plan(typ, cut{}, inMemory).err; err != nil {
				if !secret(typ) {
					t.Fatalf("left alone: %v", err)
				}
				return
			}
			shared += shareCopies(t, s, f, typ)
			if stats := s.Stats(); stats.Alone != 0 {
				t.Errorf("%+v: no object of this type should be left alone", stats)
			}
		})
	}
	if shared < 1000 {
		t.Errorf("%d parts were shared, thousands were expected", shared)
	}
}

// shareCopies shares copies of a few random objects and returns how many parts the last
// copies have in common with those before them.
func shareCopies(t *testing.T, s *Sharer, f *deduptest.Filler, typ reflect.Type) (common int) {
	var templates, before []runtime.Object
	for range 4 {
		v := reflect.New(typ)
		f.Fill(v.Elem(), 6)
		templates = append(templates, v.Interface().(runtime.Object))
	}
	given := map[unsafe.Pointer]int{} // the memory of the given objects, with their numbers
	for round := range 3 {
		results := make([]runtime.Object, len(templates))
		for i, template := range templates {
			copied := template.DeepCopyObject()
			for at := range memories(reflect.ValueOf(copied), nil) {
				given[at] = round*len(templates) + i
			}
			results[i] = shareOne(t, s, copied)
			keenSharer(t, s, typ)
			common += haveInCommon(t, results[i], before, i)
			for at, what := range memories(reflect.ValueOf(results[i]), nil) {
				if n, ok := given[at]; ok && n != round*len(templates)+i && !empty(what) {
					t.Fatalf("a %v of an object that was given is in another object", what)
				}
			}
		}
		before = results
	}
	return common
}

// empty reports whether a value has no memory.
func empty(pointer reflect.Type) bool {
	return pointer.Kind() == reflect.Pointer && pointer.Elem().Size() == 0
}

// haveInCommon returns the number of parts that an object has in common with the i-th one of
// those before, and checks that no Quantity is among them.
func haveInCommon(t *testing.T, result runtime.Object, before []runtime.Object, i int) (common int) {
	t.Helper()
	if before == nil {
		return 0
	}
	parts := memories(reflect.ValueOf(before[i]), nil)
	for at := range memories(reflect.ValueOf(result), nil) {
		if parts[at] != nil {
			common++
		}
	}
	var had writers
	had.add(t, before[i])
	had.add(t, result)
	return common
}

// TestShareParts: which parts of two equal pods are one.
func TestShareParts(t *testing.T) {
	s := NewSharer(new(Table), SharerOptions{})
	var a, b *corev1.Pod
	for range 3 {
		given := &corev1.Pod{}
		if err := given.Unmarshal(samePod(t)); err != nil {
			t.Fatal(err)
		}
		a, b = b, shareOne(t, s, given).(*corev1.Pod)
		keenSharer(t, s, reflect.TypeFor[corev1.Pod]())
	}
	partsAreOne(t, a, b)
	deduptest.Exact(t, reflect.ValueOf(b.Spec.Containers))
}

// TestShareLeavesAlone: values that are returned as they are.
func TestShareLeavesAlone(t *testing.T) {
	type locked struct {
		corev1.Pod
		unexported int
	}
	type withChannel struct{ C chan int }
	for name, obj := range map[string]any{
		"nothing":              nil,
		"a string":             "a",
		"a nil pointer":        (*corev1.Pod)(nil),
		"a pointer to a map":   &map[string]string{"a": "b"},
		"a Secret":             &corev1.Secret{Data: map[string][]byte{"a": []byte("b")}},
		"a list of Secrets":    &corev1.SecretList{Items: []corev1.Secret{{}}},
		"a field not exported": &locked{unexported: 1},
		"a channel":            &withChannel{make(chan int)},
	} {
		s := NewSharer(new(Table), SharerOptions{})
		for range 3 {
			if got := s.Share(obj); got != obj {
				t.Errorf("%s: the result is %v", name, got)
			}
		}
		if stats := s.Stats(); stats.Alone != 3 || stats.Shared != 0 || stats.WhyAlone == nil {
			t.Errorf("%s: %+v", name, stats)
		}
		if stats := s.table.Stats(); stats.Values+stats.Strings != 0 {
			t.Errorf("%s is in the table: %+v", name, stats)
		}
	}
}

// TestShareTypes: the kinds of fields that API types do not have, but those of programs do.
func TestShareTypes(t *testing.T) {
	type inner struct {
		Text string
		Bits [3]int16
		F    float64
	}
	type object struct {
		corev1.ConfigMap
		Strings []string
		Structs map[string]inner
		Deep    map[string]map[string][]string
		Any     any
		Free    map[string]any
		Pointer **inner
		Text    *string
		Slices  [][]inner
		Small   *uint16
	}
	in := func(s string) inner { return inner{s, [3]int16{1, 2, 3}, 0.5} }
	fresh := func() *object {
		p := new(in("pointer"))
		return &object{
			Strings: []string{"a", "b"}, Structs: map[string]inner{"1": in("one"), "2": in("two")},
			Deep: map[string]map[string][]string{"x": {"y": {"z", ""}, "n": nil, "e": {}}}, Any: map[string]any{"a": 1},
			Pointer: &p, Text: new("text"), Slices: [][]inner{{in("s"), in("t")}, {}, nil}, Small: new(uint16(7)),
		}
	}
	s := NewSharer(new(Table), SharerOptions{})
	var a, b *object
	for range 4 {
		given := fresh()
		a, b = b, s.Share(given).(*object)
		if !reflect.DeepEqual(b, fresh()) || !reflect.DeepEqual(given, fresh()) {
			t.Fatalf("given: %+v\ngot:   %+v", given, b)
		}
		keenSharer(t, s, reflect.TypeFor[object]())
	}
	for name, shared := range map[string]bool{
		"map of structs": reflect.ValueOf(a.Structs).UnsafePointer() == reflect.ValueOf(b.Structs).UnsafePointer(),
		"map of maps":    reflect.ValueOf(a.Deep).UnsafePointer() == reflect.ValueOf(b.Deep).UnsafePointer(),
		"pointer":        a.Pointer == b.Pointer,
		"string pointer": a.Text == b.Text,
		"slice":          &a.Slices[0] == &b.Slices[0],
		"string":         unsafe.StringData(a.Strings[1]) == unsafe.StringData(b.Strings[1]),
		"small number":   a.Small == b.Small,
	} {
		if !shared {
			t.Errorf("the %s is there twice", name)
		}
	}
	if reflect.ValueOf(a.Any).UnsafePointer() == reflect.ValueOf(b.Any).UnsafePointer() {
		t.Error("what is in an interface is shared")
	}
	if slices.Equal(a.Slices[0], nil) {
		t.Error("a slice is empty")
	}
}
