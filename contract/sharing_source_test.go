package contract_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/internal/decode/dedup"
	"github.com/tidings-go/tidings/source"
)

// given is a source that lists objects which it keeps, and has no events.
type given[T source.Object] []T

func (g given[T]) List(context.Context, source.ListOptions) (source.Page[T], error) {
	page := source.Page[T]{Version: "100"}
	for _, obj := range g {
		page.Items = append(page.Items, source.ItemOf(obj))
	}
	return page, nil
}

func (g given[T]) Watch(ctx context.Context, o source.WatchOptions) (source.Stream[T], error) {
	if o.SendInitialEvents {
		return nil, source.ErrStreamedListRefused
	}
	return idleStream[T]{ctx}, nil
}

type idleStream[T source.Object] struct{ ctx context.Context }

func (s idleStream[T]) Next() ([]source.Event[T], error) {
	<-s.ctx.Done()
	return nil, s.ctx.Err()
}

func (s idleStream[T]) Close() error { return nil }

// replicas are eight pods that have all in common but their names, each in memory of its own.
func replicas() given[*corev1.Pod] {
	var pods given[*corev1.Pod]
	for n := range 8 {
		pod := replica(n)
		pod.ResourceVersion = fmt.Sprint(n + 1)
		pods = append(pods, pod)
	}
	return pods
}

// cachedOf runs an informer until it is in sync, and returns the cached objects, by name.
func cachedOf[T source.Object](
	t *testing.T, src source.Source[T], o tidings.InformerOptions[T],
) ([]T, tidings.Health) {
	t.Helper()
	informer, err := tidings.NewInformer(src, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- informer.Run(ctx) }()
	synctest.Wait()
	var all []T
	for _, obj := range informer.Lister().All() {
		all = append(all, obj)
	}
	health := informer.Health()
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	slices.SortFunc(all, func(a, b T) int { return len(a.GetName()) - len(b.GetName()) })
	return all, health
}

// TestNewInformerShares has a source yield decoded objects: the cached objects are equal to them
// and share, and they stay as they are.
func TestNewInformerShares(t *testing.T) {
	slim := func(pod *corev1.Pod) (*corev1.Pod, error) {
		pod = pod.DeepCopy()
		pod.Annotations = map[string]string{"slim": "true"}
		return pod, nil
	}
	with := func(s tidings.Sharing) tidings.InformerOptions[*corev1.Pod] {
		var o tidings.InformerOptions[*corev1.Pod]
		o.Transport.Sharing = s
		return o
	}
	slimmed, alone := with(tidings.ShareAll), with(tidings.ShareNothing)
	slimmed.Transform, alone.Transform = slim, slim
	for name, tt := range map[string]struct {
		o       tidings.InformerOptions[*corev1.Pod]
		common  bool // what two pods have
		counted bool // by the health
	}{
		"default":               {o: tidings.InformerOptions[*corev1.Pod]{}, common: true, counted: true},
		"strings":               {o: with(tidings.ShareStrings), counted: true},
		"nothing":               {o: with(tidings.ShareNothing)},
		"transform":             {o: slimmed, common: true, counted: true},
		"transform and nothing": {o: alone},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pods, before := replicas(), replicas()
				all, health := cachedOf(t, pods, tt.o)
				if len(all) != 8 || inCommon(all[6], all[7]) != tt.common {
					t.Errorf("%d pods are cached; labels and containers in common: %t",
						len(all), !tt.common)
				}
				if after := health.Decoding.After; (after.Shared == 8) != tt.counted ||
					after.Alone != 0 {
					t.Errorf("health has %+v", after)
				}
				if !reflect.DeepEqual(pods, before) || inCommon(pods[6], pods[7]) {
					t.Error("the source's own objects were written to")
				}
				for _, pod := range all {
					n := slices.IndexFunc(pods,
						func(of *corev1.Pod) bool { return of.Name == pod.Name })
					want := pods[n]
					if !tt.counted && tt.o.Transform == nil && pod != want {
						t.Errorf("%s is not cached as it is", pod.Name)
					}
					if tt.o.Transform != nil {
						want, _ = slim(want)
					}
					if !reflect.DeepEqual(pod, want) {
						t.Errorf("cached is %v, want %v", pod, want)
					}
				}
			})
		})
	}
}

// TestNewInformerSharesAmong has two informers of one table, and two that have one each.
func TestNewInformerSharesAmong(t *testing.T) {
	for _, table := range []*dedup.Table{new(dedup.Table), nil} {
		synctest.Test(t, func(t *testing.T) {
			var o tidings.InformerOptions[*corev1.Pod]
			o.Transport.Table = table
			first, _ := cachedOf(t, replicas(), o)
			second, _ := cachedOf(t, replicas(), o)
			if inCommon(first[7], second[7]) != (table != nil) {
				t.Errorf("with one table %t, pods of two informers have parts in common: %t",
					table != nil, table == nil)
			}
		})
	}
}

// TestNewInformerLeavesSecretsAlone, by their type or by the options for metadata.
func TestNewInformerLeavesSecretsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var secrets given[*corev1.Secret]
		var metadata given[*metav1.PartialObjectMetadata]
		for n := range 8 {
			m := metav1.ObjectMeta{
				Namespace: "default", Name: fmt.Sprint("s", n), ResourceVersion: fmt.Sprint(n + 1),
				Labels: map[string]string{"app": "web"},
			}
			data := map[string][]byte{"a": []byte("hunter2")}
			secrets = append(secrets, &corev1.Secret{ObjectMeta: m, Data: data})
			metadata = append(metadata, &metav1.PartialObjectMetadata{ObjectMeta: *m.DeepCopy()})
		}
		table := new(dedup.Table)
		sharing := tidings.Transport{Table: table}
		held, _ := cachedOf(t, secrets, tidings.InformerOptions[*corev1.Secret]{Transport: sharing})
		for _, secret := range held {
			if !slices.Contains(secrets, secret) {
				t.Errorf("%s is not cached as it is", secret.Name)
			}
		}
		for resource, shared := range map[schema.GroupResource]int64{
			{}: 0, {Resource: "secrets"}: 0, {Resource: "pods"}: 8,
		} {
			var o tidings.InformerOptions[*metav1.PartialObjectMetadata]
			o.Resource, o.Transport.Table = resource, new(dedup.Table)
			held, health := cachedOf(t, metadata, o)
			after, kept := health.Decoding.After, o.Transport.Table.Stats().Kept
			if len(held) != 8 || after.Shared != shared || (kept != 0) != (shared != 0) {
				t.Errorf("of %q %d are cached, health has %+v, the table keeps %d", resource,
					len(held), after, kept)
			}
		}
		if table.Stats().Kept != 0 {
			t.Errorf("the table keeps %+v of Secrets", table.Stats())
		}
	})
}

// TestNewInformerOfREST has a source that shares as it decodes: nothing is shared twice, but the
// results of a transform are.
func TestNewInformerOfREST(t *testing.T) {
	slim := func(pod *corev1.Pod) (*corev1.Pod, error) {
		if pod.Labels["seen"] != "" {
			return nil, errors.New("it was changed before")
		}
		pod.Labels["seen"] = "yes"
		return pod, nil
	}
	transformed := tidings.InformerOptions[*corev1.Pod]{Transform: slim}
	nothing := tidings.InformerOptions[*corev1.Pod]{}
	nothing.Transport.Sharing = tidings.ShareNothing
	var dropping, strings, none source.RESTOptions
	dropping.Drop = []string{"metadata.annotations"}
	strings.Sharing, none.Sharing = source.ShareStrings, source.ShareNothing
	for name, tt := range map[string]struct {
		o     tidings.InformerOptions[*corev1.Pod]
		rest  source.RESTOptions
		after int64
	}{
		"as decoded":           {after: 0},
		"transform":            {o: transformed, rest: strings, after: 8},
		"fields are left out":  {rest: dropping},
		"nothing, whole twice": {o: nothing, rest: none},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := apisim.Start(t)
				for n := range 8 {
					pod := replica(n)
					pod.Annotations = map[string]string{"note": "x"}
					if _, err := server.Create(t.Context(), pod); err != nil {
						t.Fatal(err)
					}
				}
				client, err := source.NewClient(server.Config(), nil)
				if err != nil {
					t.Fatal(err)
				}
				pods := source.Resource{Version: "v1", Name: "pods", Kind: "Pod"}
				made := func() *corev1.Pod { return new(corev1.Pod) }
				src := source.NewTyped(client, pods, made, tt.rest)
				all, health := cachedOf[*corev1.Pod](t, src, tt.o)
				common := inCommon(all[6], all[7])
				if len(all) != 8 || common != (tt.rest.Sharing != source.ShareNothing) {
					t.Errorf("%d pods are cached, with parts in common: %t", len(all), common)
				}
				if after := health.Decoding.After; after.Shared != tt.after {
					t.Errorf("health has %+v, want %d shared", after, tt.after)
				}
				if dropped := all[0].Annotations == nil; dropped != (len(tt.rest.Drop) > 0) {
					t.Errorf("the annotations are left out: %t", dropped)
				}
			})
		})
	}
}
