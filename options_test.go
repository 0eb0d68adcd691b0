package tidings_test

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/internal/change"
	"github.com/tidings-go/tidings/internal/dedup"
	"github.com/tidings-go/tidings/internal/delta"
	"github.com/tidings-go/tidings/internal/fanout"
	"github.com/tidings-go/tidings/source"
	"github.com/tidings-go/tidings/store"
)

// tried is what uses the options of one struct: it returns an error of the options, or
// runs what they are for and fails the test where that does not work.
type tried func(t *testing.T, options any) error

// trial makes a tried of a function of the options' type.
func trial[O any](use func(t *testing.T, o O) error) tried {
	return func(t *testing.T, options any) error { return use(t, options.(O)) }
}

// optionStructs has every struct of options of the public packages, by package directory
// and name. TestEveryStructOfOptionsIsTried holds it to the source.
var optionStructs = map[string]struct {
	zero any
	use  tried
}{
	". FactoryOptions": {tidings.FactoryOptions{}, trial(func(t *testing.T, o tidings.FactoryOptions) error {
		return follows(t, apisim.Options{}, o, tidings.Selection{}, tidings.HandlerOptions{})
	})},
	". Selection": {tidings.Selection{}, trial(func(t *testing.T, o tidings.Selection) error {
		return follows(t, apisim.Options{}, tidings.FactoryOptions{}, o, tidings.HandlerOptions{})
	})},
	". HandlerOptions": {tidings.HandlerOptions{}, trial(func(t *testing.T, o tidings.HandlerOptions) error {
		return follows(t, apisim.Options{}, tidings.FactoryOptions{}, tidings.Selection{}, o)
	})},
	". InformerOptions": {tidings.InformerOptions[*corev1.ConfigMap]{}, trial(func(t *testing.T, o tidings.InformerOptions[*corev1.ConfigMap]) error {
		return runs(t, source.RESTOptions{}, o)
	})},
	"source RESTOptions": {source.RESTOptions{}, trial(func(t *testing.T, o source.RESTOptions) error {
		return runs(t, o, tidings.InformerOptions[*corev1.ConfigMap]{})
	})},
	"source ListOptions":  {source.ListOptions{}, trial(lists)},
	"source WatchOptions": {source.WatchOptions{}, trial(watches)},
	"internal/dedup SharerOptions": {dedup.SharerOptions{}, trial(func(t *testing.T, o dedup.SharerOptions) error {
		obj := object("a", "1")
		if got := dedup.NewSharer(new(dedup.Table), o).Share(obj); !reflect.DeepEqual(got, obj) {
			t.Errorf("the sharer returns %v", got)
		}
		return nil
	})},
	"apisim Options": {apisim.Options{}, trial(func(t *testing.T, o apisim.Options) error {
		return follows(t, o, tidings.FactoryOptions{}, tidings.Selection{}, tidings.HandlerOptions{})
	})},
	"apisim RestartOptions": {apisim.RestartOptions{}, trial(func(t *testing.T, o apisim.RestartOptions) error {
		server, err := apisim.New(apisim.Options{})
		if err != nil {
			t.Fatal(err)
		}
		server.Restart(o)
		return server.Close()
	})},
	"internal/fanout Options": {fanout.Options[int]{}, trial(func(t *testing.T, o fanout.Options[int]) error {
		return delivers(t, o, fanout.SubscriptionOptions{})
	})},
	"internal/fanout SubscriptionOptions": {fanout.SubscriptionOptions{}, trial(func(t *testing.T, o fanout.SubscriptionOptions) error {
		return delivers(t, fanout.Options[int]{}, o)
	})},
	"internal/delta Options": {delta.Options[int]{Known: func() delta.Known[int] { return emptyStore().Snapshot() }}, trial(func(t *testing.T, o delta.Options[int]) error {
		return queues(t, o, delta.ReplaceOptions{})
	})},
	"internal/delta ReplaceOptions": {delta.ReplaceOptions{}, trial(func(t *testing.T, o delta.ReplaceOptions) error {
		return queues(t, delta.Options[int]{Known: func() delta.Known[int] { return emptyStore().Snapshot() }}, o)
	})},
	"store Options": {store.Options[int]{}, trial(func(t *testing.T, o store.Options[int]) error {
		s, err := store.New(o)
		if err == nil {
			s.Update(func(b *store.Batch[int]) { b.Set("a", 1) })
		}
		return err
	})},
}

// optionsElsewhere are the structs of options that are not tried here, each with the reason.
var optionsElsewhere = map[string]string{
	"apiserver Options":               "they are flags of a kube-apiserver, which says itself what is wrong, and a writer",
	"clientgo/cache SharingOptions":   "clientgo/informers tries what WithSharing refuses",
	"clientgo/informers GroupOptions": "clientgo/informers tries them with a generated group",
	"internal/reflector Options":      "what a user can set of them is Transport, in FactoryOptions",
}

func emptyStore() *store.Store[int] {
	s, err := store.New(store.Options[int]{})
	if err != nil {
		panic(err)
	}
	return s
}

// follows runs an informer of a factory: it syncs, follows a change and stops.
func follows(t *testing.T, so apisim.Options, o tidings.FactoryOptions, s tidings.Selection, h tidings.HandlerOptions) error {
	t.Helper()
	server, err := apisim.New(so)
	if err != nil {
		return err
	}
	defer server.Close() //nolint:errcheck // it was used, and is gone
	factory, err := tidings.NewFactory(server.Config(), o)
	if err != nil {
		return err
	}
	defer func() {
		if err := factory.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	informer, err := tidings.For[*corev1.ConfigMap](factory, s)
	if err != nil {
		return err
	}
	if _, err := informer.AddHandler(tidings.Funcs[*corev1.ConfigMap]{}, h); err != nil {
		return err
	}
	if err := factory.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	followsChange(t, server, informer)
	return nil
}

// followsChange waits for an informer that runs, and for a write.
func followsChange(t *testing.T, server *apisim.Server, informer *tidings.Informer[*corev1.ConfigMap]) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute) // several watches of the default length
	defer cancel()
	if err := informer.WaitForSync(ctx); err != nil {
		t.Error(err)
		return
	}
	made, err := server.Create(ctx, object("a", "1"))
	if err != nil {
		t.Fatal(err)
	}
	if err := informer.WaitFor(ctx, made.(metav1.Object).GetResourceVersion()); err != nil {
		t.Error(err)
	}
}

// runs is follows for an informer without a factory.
func runs(t *testing.T, ro source.RESTOptions, o tidings.InformerOptions[*corev1.ConfigMap]) error {
	t.Helper()
	server, src := configMapSource(t, ro)
	defer server.Close() //nolint:errcheck // as above
	if _, err := src.List(t.Context(), source.ListOptions{}); err != nil {
		return err
	}
	informer, err := tidings.NewInformer(src, o)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- informer.Run(ctx) }()
	synctest.Wait() // Run has begun
	followsChange(t, server, informer)
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	return nil
}

// configMapSource returns a server and a source of its config maps.
func configMapSource(t *testing.T, o source.RESTOptions) (*apisim.Server, *source.REST[*corev1.ConfigMap]) {
	t.Helper()
	server, err := apisim.New(apisim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	client, err := source.NewClient(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	resource := source.Resource{Version: "v1", Name: "configmaps", Kind: "ConfigMap", Scope: source.ScopeNamespaced}
	return server, source.NewTyped(client, resource, func() *corev1.ConfigMap { return new(corev1.ConfigMap) }, o)
}

func lists(t *testing.T, o source.ListOptions) error {
	server, src := configMapSource(t, source.RESTOptions{})
	defer server.Close() //nolint:errcheck // as above
	_, err := src.List(t.Context(), o)
	return err
}

func watches(t *testing.T, o source.WatchOptions) error {
	server, src := configMapSource(t, source.RESTOptions{})
	defer server.Close() //nolint:errcheck // as above
	stream, err := src.Watch(t.Context(), o)
	if err != nil {
		return err
	}
	if _, err := server.Create(t.Context(), object("a", "1")); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Next(); err != nil {
		t.Error(err)
	}
	return stream.Close()
}

func delivers(t *testing.T, o fanout.Options[int], so fanout.SubscriptionOptions) error {
	log := fanout.New(o)
	defer log.Close()
	told := make(chan int, 1)
	nothing := func() (string, int, bool) { return "", 0, false }
	if _, err := log.Subscribe(func(n change.Change[int]) { told <- n.New }, nothing, so); err != nil {
		return err
	}
	log.Start()
	log.Publish([]change.Change[int]{{Type: change.Added, Key: "a", New: 1}}, 1)
	if got := <-told; got != 1 {
		t.Errorf("the handler was told %d", got)
	}
	log.NextResync()
	log.DueForResync(time.Now().Add(time.Hour))
	return nil
}

func queues(t *testing.T, o delta.Options[int], ro delta.ReplaceOptions) error {
	q, err := delta.New(o)
	if err != nil {
		return err
	}
	scope := ""
	if len(o.Partitions) > 0 {
		scope = o.Partitions[0]
	}
	key := scope + "a"
	if err := q.Replace(t.Context(), scope, "1", []delta.Item[int]{{Key: key, Version: "1"}}, ro); err != nil {
		t.Error(err)
	}
	for _, change := range []delta.EventType{delta.Set, delta.Delete} {
		if err := q.Pop(t.Context(), func(delta.Batch[int]) {}); err != nil {
			t.Error(err)
		}
		if err := q.Push(t.Context(), scope, "2", []delta.Event[int]{{Type: change, Item: delta.Item[int]{Key: key, Version: "2"}}}); err != nil {
			t.Error(err)
		}
	}
	q.Close()
	return nil
}

// extremes returns values of a type that are zero, odd, or at the ends of its range.
func extremes(t reflect.Type) []any {
	switch t.Kind() {
	case reflect.Bool:
		return []any{true}
	case reflect.Int, reflect.Int64:
		return []any{int64(-1), int64(1), int64(math.MinInt64), int64(math.MaxInt64)}
	case reflect.Uint8:
		return []any{uint8(1), uint8(math.MaxUint8)}
	case reflect.Uint64:
		return []any{uint64(1), uint64(math.MaxUint64)}
	case reflect.Float64:
		return []any{-1.0, 1.0, math.SmallestNonzeroFloat64, math.MaxFloat64, -math.MaxFloat64, math.NaN(), math.Inf(1), math.Inf(-1)}
	case reflect.String:
		return []any{"a", " ", "A b/\x00\xff", strings.Repeat("a", 1000)}
	case reflect.Slice:
		return []any{[]string{}, []string{""}, []string{"a", "a"}, []string{"A b/\x00\xff"}}
	case reflect.Map, reflect.Func, reflect.Pointer, reflect.Interface:
		return nil // nil, which is the zero value; maps with entries are made by hand
	}
	panic("extremes of a " + t.String() + " are not known: add them")
}

// eachExtreme calls try for each field of a struct, and of those within it, and each extreme
// value, with the struct that has it.
func eachExtreme(whole reflect.Value, at reflect.Value, path string, try func(path string, value any)) {
	for i := range at.NumField() {
		field, to := at.Type().Field(i), at.Field(i)
		if !field.IsExported() {
			continue
		}
		name := strings.TrimPrefix(path+"."+field.Name, ".")
		if field.Type.Kind() == reflect.Struct {
			eachExtreme(whole, to, name, try)
			continue
		}
		before := reflect.ValueOf(to.Interface())
		values := extremes(field.Type)
		if field.Type.Kind() == reflect.Map {
			entry := reflect.MakeMap(field.Type)
			entry.SetMapIndex(reflect.ValueOf("a"), reflect.Zero(field.Type.Elem()))
			values = []any{reflect.MakeMap(field.Type).Interface(), entry.Interface()}
		}
		for _, value := range values {
			if v := reflect.ValueOf(value); v.CanConvert(field.Type) {
				to.Set(v.Convert(field.Type))
				try(name, to.Interface())
			}
		}
		to.SetZero()
		if before.IsValid() {
			to.Set(before)
		}
	}
}

func TestExtremeOptionsAreRefusedAtOnceOrWork(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(optionStructs)) {
		options := optionStructs[name]
		whole := reflect.New(reflect.TypeOf(options.zero)).Elem()
		whole.Set(reflect.ValueOf(options.zero))
		synctest.Test(t, func(t *testing.T) {
			if err := options.use(t, whole.Interface()); err != nil {
				t.Errorf("%s without any set: %v", name, err)
			}
		})
		eachExtreme(whole, whole, "", func(field string, value any) {
			t.Run(fmt.Sprintf("%s.%s=%.20q", name, field, fmt.Sprint(value)), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					began := time.Now()
					err := options.use(t, whole.Interface())
					if err == nil {
						return
					}
					_, last, nested := strings.Cut(field, ".")
					if !nested {
						last = field
					}
					if said := strings.ToLower(err.Error()); !strings.Contains(said, strings.ToLower(strings.TrimSuffix(strings.TrimSuffix(last, "s"), "e"))) {
						t.Errorf("the error does not name the field: %v", err)
					}
					if took := time.Since(began); took > 0 {
						t.Errorf("the error came after %v: %v", took, err)
					}
				})
			})
		})
	}
}

// TestEveryStructOfOptionsIsTried reads which structs of options the packages have.
func TestEveryStructOfOptionsIsTried(t *testing.T) {
	var found []string
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			switch name := entry.Name(); {
			case path == ".":
			case strings.HasPrefix(name, "."), slices.Contains([]string{"cmd", "bench", "e2e", "examples", "testdata", "docs"}, name):
				return fs.SkipDir
			case strings.HasPrefix(path, "clientgo/internal"),
				filepath.Dir(path) == "internal" && !slices.Contains([]string{"delta", "fanout", "reflector", "dedup"}, name):
				return fs.SkipDir // no user names them
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for node := range ast.Preorder(file) {
			spec, ok := node.(*ast.TypeSpec)
			if !ok || !spec.Name.IsExported() || !strings.HasSuffix(spec.Name.Name, "Options") && spec.Name.Name != "Selection" {
				continue
			}
			if _, ok := spec.Type.(*ast.StructType); ok {
				found = append(found, filepath.ToSlash(filepath.Dir(path))+" "+spec.Name.Name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	listed := slices.Concat(slices.Collect(maps.Keys(optionStructs)), slices.Collect(maps.Keys(optionsElsewhere)))
	slices.Sort(found)
	slices.Sort(listed)
	if !slices.Equal(found, listed) {
		t.Errorf("the packages have the structs\n %s\nand tried are\n %s", strings.Join(found, "\n "), strings.Join(listed, "\n "))
	}
}
