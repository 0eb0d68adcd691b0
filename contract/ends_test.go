package contract_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"reflect"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
)

// bubble is a virtual hour with a server, in which a number is used.
type bubble struct {
	*testing.T
	ctx      context.Context
	server   *apisim.Server
	requests atomic.Int64
}

var discard = slog.New(slog.DiscardHandler)

const (
	// anHour is how long a number is used.
	anHour = time.Hour
	// mostRequests and mostCalls are more than a use makes in an hour, unless it makes them in a
	// loop.
	mostRequests, mostCalls = 2000, 100_000
	// mostBytes is more memory than a use keeps.
	mostBytes = 64 << 20
)

// start starts the server of a bubble.
func (b *bubble) start(o apisim.Options) error {
	server, err := apisim.New(o)
	if err != nil {
		return err
	}
	b.server = server
	server.Inject(apisim.Match{}, apisim.Call(func(*http.Request) {
		if b.requests.Add(1) > mostRequests {
			time.Sleep(time.Minute) // end the loop
		}
	}))
	for _, namespace := range []string{"a", "ops"} {
		b.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	}
	b.create(configMap("first"))
	return nil
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name}}
}

func (b *bubble) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bubble) create(o kruntime.Object) {
	b.Helper()
	_, err := b.server.Create(b.ctx, o)
	b.must(err)
}

// wait waits for a condition, at most an hour.
func (b *bubble) wait(what string, met func() bool) {
	b.Helper()
	for end := time.Now().Add(anHour); !met(); time.Sleep(time.Second) {
		if time.Now().After(end) {
			b.Errorf("after an hour, %s", what)
			return
		}
		synctest.Wait()
	}
}

// value is a number that is tried: a name, and what it is for a type.
type value struct {
	name string
	of   func(t reflect.Type) (v reflect.Value, ok bool)
}

var values = []value{
	{"zero", func(t reflect.Type) (reflect.Value, bool) { return reflect.Zero(t), true }},
	{"negative", func(t reflect.Type) (reflect.Value, bool) { return number(t, -1) }},
	{"one", func(t reflect.Type) (reflect.Value, bool) { return number(t, 1) }},
	{"largest", func(t reflect.Type) (reflect.Value, bool) {
		v := reflect.New(t).Elem()
		switch {
		case v.CanInt():
			v.SetInt(math.MaxInt64 >> (64 - t.Bits()))
		case v.CanUint():
			v.SetUint(math.MaxUint64 >> (64 - t.Bits()))
		case t.Bits() == 32:
			v.SetFloat(math.MaxFloat32)
		default:
			v.SetFloat(math.MaxFloat64)
		}
		return v, true
	}},
	{"smallest", float(math.SmallestNonzeroFloat32)},
	{"NaN", float(math.NaN())},
	{"+Inf", float(math.Inf(1))},
	{"-Inf", float(math.Inf(-1))},
}

func number(t reflect.Type, n int64) (reflect.Value, bool) {
	v := reflect.New(t).Elem()
	if v.CanUint() && n < 0 {
		return v, false
	}
	return reflect.ValueOf(n).Convert(t), true
}

func float(f float64) func(t reflect.Type) (reflect.Value, bool) {
	return func(t reflect.Type) (reflect.Value, bool) {
		return reflect.ValueOf(f).Convert(floats(t)), t.Kind() == reflect.Float64 || t.Kind() == reflect.Float32
	}
}

// floats returns t if it is a type of floats, and another one otherwise.
func floats(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Float32 || t.Kind() == reflect.Float64 {
		return t
	}
	return reflect.TypeFor[float64]()
}

// try uses a number in a bubble: use returns an error at once, or the thing that was made works.
func try(t *testing.T, name string, use func(b *bubble) error) {
	if reason := knownDefects[name]; reason != "" {
		t.Logf("%s is left out: %s", name, reason)
		return
	}
	t.Run(name, func(t *testing.T) {
		// A loop in a bubble stops its clock: this one is outside of it.
		endless := time.AfterFunc(2*time.Minute, func() { panic(name + ": it does not end") })
		defer endless.Stop()
		synctest.Test(t, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			b := &bubble{T: t, ctx: ctx}
			err := use(b)
			stop()
			if b.server != nil {
				if n := b.requests.Load(); n > mostRequests {
					t.Errorf("%d requests", n)
				}
				var memory runtime.MemStats
				runtime.ReadMemStats(&memory)
				if err == nil && memory.HeapAlloc > mostBytes {
					runtime.GC()
					if runtime.ReadMemStats(&memory); memory.HeapAlloc > mostBytes {
						t.Errorf("%d MiB of heap", memory.HeapAlloc>>20)
					}
				}
				if err := b.server.Close(); err != nil {
					t.Error(err)
				}
			}
			if err != nil && err.Error() == "" {
				t.Error("an error without a text")
			}
			synctest.Wait()
		})
	})
}

// tried returns the names of the numbers that are tried.
func tried(t *testing.T) (names []string) {
	t.Helper()
	for name, in := range inputs {
		of := reflect.TypeOf(in.empty).Elem()
		for field := range fieldsOf(of) {
			names = append(names, name+"."+field)
		}
	}
	for name := range parameters {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// fieldsOf yields the names of the exported numbers of a struct.
func fieldsOf(of reflect.Type) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for f := range of.Fields() {
			kind := reflect.New(f.Type).Elem()
			isNumber := kind.CanInt() || kind.CanUint() || kind.CanFloat()
			if !f.IsExported() || !isNumber || f.Type.PkgPath() != "" && f.Type != reflect.TypeFor[time.Duration]() {
				continue
			}
			if !yield(f.Name) {
				return
			}
		}
	}
}

// TestNumbersAtTheirEnds gives every option of the API the numbers at the ends of its type.
func TestNumbersAtTheirEnds(t *testing.T) {
	for name, in := range inputs {
		of := reflect.TypeOf(in.empty).Elem()
		for field := range fieldsOf(of) {
			for _, v := range values {
				fieldType, _ := of.FieldByName(field)
				number, ok := v.of(fieldType.Type)
				if !ok {
					continue
				}
				try(t, name+"."+field+"="+v.name, func(b *bubble) error {
					options := reflect.New(of)
					options.Elem().Set(reflect.ValueOf(in.empty).Elem())
					options.Elem().FieldByName(field).Set(number)
					return in.use(b, options.Interface())
				})
			}
		}
	}
	for name, use := range parameters {
		for _, v := range values {
			if number, ok := v.of(reflect.TypeFor[int64]()); ok {
				try(t, name+"="+v.name, func(b *bubble) error { return use(b, number.Int()) })
			}
		}
	}
}

// follow runs an informer of config maps for an hour: it has to hold the first one, and a later
// one, unless it waits for longer.
func (b *bubble) follow(fo tidings.FactoryOptions, ho tidings.HandlerOptions, mayWait bool) error {
	b.Helper()
	if b.server == nil {
		b.must(b.start(apisim.Options{}))
	}
	fo.Logger = discard
	factory, err := tidings.NewFactory(b.server.Config(), fo)
	if err != nil {
		return err
	}
	informer, err := tidings.For[*corev1.ConfigMap](factory, tidings.Selection{})
	if err != nil {
		return err
	}
	var seen atomic.Int64
	handler := tidings.Funcs[*corev1.ConfigMap]{
		OnAdd:    func(*corev1.ConfigMap, bool) { seen.Add(1) },
		OnUpdate: func(_, _ *corev1.ConfigMap) { b.mostCalls(&seen) },
	}
	if _, err := informer.AddHandler(handler, ho); err != nil {
		return err
	}
	b.must(factory.Start(b.ctx))
	if !mayWait {
		ctx, stop := context.WithTimeout(b.ctx, anHour)
		b.must(factory.WaitForSync(ctx))
		stop()
		b.create(configMap("later"))
		b.wait("the handler has not seen the later object", func() bool { return seen.Load() >= 2 })
		b.server.CutConnections()
	}
	time.Sleep(10 * time.Minute)
	if !mayWait {
		if _, err := informer.Lister().Get("a/later"); err != nil {
			b.Error(err)
		}
	}
	b.stop(factory.Shutdown)
	return nil
}

// mostCalls counts a call, and ends a loop of calls.
func (b *bubble) mostCalls(n *atomic.Int64) {
	if n.Add(1) == mostCalls {
		b.Errorf("%d calls", mostCalls)
	}
	if n.Load() >= mostCalls {
		time.Sleep(time.Minute)
	}
}

// stop calls a function that has to return within an hour.
func (b *bubble) stop(shutdown func(context.Context) error) {
	b.Helper()
	ctx, stop := context.WithTimeout(context.Background(), anHour)
	defer stop()
	if err := shutdown(ctx); err != nil {
		b.Errorf("it does not stop: %v", err)
	}
}

// run runs something for a time, and stops it.
func (b *bubble) run(d time.Duration, run func(ctx context.Context) error) {
	b.Helper()
	ctx, stop := context.WithCancel(b.ctx)
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	time.Sleep(d)
	stop()
	select {
	case err := <-ended:
		if err != nil && !errors.Is(err, context.Canceled) {
			b.Error(err)
		}
	case <-time.After(anHour):
		b.Error("it does not stop within an hour")
	}
}

// panicOf turns a panic of a test's helper, which has no error to return, into one.
func panicOf(f func()) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	f()
	return nil
}
