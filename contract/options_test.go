package contract_test

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/source"
)

type informerOptions = tidings.InformerOptions[*corev1.ConfigMap]

// ofFactory are the options of an informer of a factory.
type ofFactory struct {
	FactoryOptions tidings.FactoryOptions
	Selection      tidings.Selection
	HandlerOptions tidings.HandlerOptions
}

// use runs an informer: it syncs, follows a change and stops. An error is one of the options.
func (o *ofFactory) use(t *testing.T) error {
	server, err := apisim.New(apisim.Options{})
	if err != nil {
		return err
	}
	defer server.Close() //nolint:errcheck // it was used, and is gone
	factory, err := tidings.NewFactory(server.Config(), o.FactoryOptions)
	if err != nil {
		return err
	}
	defer func() {
		if err := factory.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	informer, err := tidings.For[*corev1.ConfigMap](factory, o.Selection)
	if err != nil {
		return err
	}
	_, err = informer.AddHandler(ignore[*corev1.ConfigMap](), o.HandlerOptions)
	if err != nil {
		return err
	}
	if err := factory.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	followsChange(t, server, informer)
	return nil
}

// ofSource are the options of an informer without a factory.
type ofSource struct {
	RESTOptions     source.RESTOptions
	InformerOptions informerOptions
}

func (o *ofSource) use(t *testing.T) error {
	server, err := apisim.New(apisim.Options{})
	if err != nil {
		return err
	}
	defer server.Close() //nolint:errcheck // as above
	client, err := source.NewClient(server.Config(), nil)
	if err != nil {
		t.Fatal(err)
	}
	src := source.NewTyped(client, source.Resource{
		Version: "v1", Name: "configmaps", Kind: "ConfigMap", Scope: source.ScopeNamespaced,
	}, func() *corev1.ConfigMap { return new(corev1.ConfigMap) }, o.RESTOptions)
	if _, err := src.List(t.Context(), source.ListOptions{}); err != nil {
		return err
	}
	informer, err := tidings.NewInformer(src, o.InformerOptions)
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

// followsChange waits for an informer that runs, and for a write.
func followsChange(
	t *testing.T, server *apisim.Server, informer *tidings.Informer[*corev1.ConfigMap],
) {
	t.Helper()
	// Several watches of the default length.
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
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
		return []any{
			-1.0, 1.0, math.SmallestNonzeroFloat64, math.MaxFloat64, -math.MaxFloat64,
			math.NaN(), math.Inf(1), math.Inf(-1),
		}
	case reflect.String:
		return []any{"a", " ", "A b/\x00\xff", strings.Repeat("a", 1000)}
	case reflect.Slice:
		return []any{[]string{}, []string{""}, []string{"a", "a"}, []string{"A b/\x00\xff"}}
	case reflect.Map, reflect.Func, reflect.Pointer, reflect.Interface:
		return nil // nil, which is the zero value
	}
	panic("extremes of a " + t.String() + " are not known: add them")
}

// eachExtreme calls try for each field of a struct, and of those within it, and each extreme
// value, while the struct has it.
func eachExtreme(at reflect.Value, path string, try func(path string, value any)) {
	for i := range at.NumField() {
		field, to := at.Type().Field(i), at.Field(i)
		name := path + "." + field.Name
		switch {
		case !field.IsExported():
		case field.Type.Kind() == reflect.Struct:
			eachExtreme(to, name, try)
		default:
			for _, value := range extremes(field.Type) {
				if v := reflect.ValueOf(value); v.CanConvert(field.Type) {
					to.Set(v.Convert(field.Type))
					try(name, to.Interface())
				}
			}
			to.SetZero()
		}
	}
}

// TestExtremeOptionsAreRefusedAtOnceOrWork sets each option that makes an informer or a
// handler to values that are odd, or at the ends of its range.
func TestExtremeOptionsAreRefusedAtOnceOrWork(t *testing.T) {
	for _, options := range []interface{ use(t *testing.T) error }{&ofFactory{}, &ofSource{}} {
		synctest.Test(t, func(t *testing.T) {
			if err := options.use(t); err != nil {
				t.Errorf("%T without any set: %v", options, err)
			}
		})
		eachExtreme(reflect.ValueOf(options).Elem(), "", func(field string, value any) {
			t.Run(fmt.Sprintf("%s=%.20q", field[1:], fmt.Sprint(value)), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					began := time.Now()
					err := options.use(t)
					if err == nil {
						return
					}
					last := field[strings.LastIndex(field, ".")+1:]
					stem := strings.TrimSuffix(strings.TrimSuffix(last, "s"), "e")
					if !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(stem)) {
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
