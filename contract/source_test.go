package contract_test

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/internal/test/follow"
	"github.com/tidings-go/tidings/source"
)

// fakeSource is a source as fakes are: it lists the objects that it was given, does not stream
// lists, and its watch brings the events that the test sends.
type fakeSource struct {
	lists  [][]*corev1.ConfigMap // one after the other; the last one again and again
	limits []int64               // of the pages that it was asked for
	events chan source.Event[*corev1.ConfigMap]
}

func (s *fakeSource) List(
	_ context.Context, o source.ListOptions,
) (source.Page[*corev1.ConfigMap], error) {
	s.limits = append(s.limits, o.Limit)
	var page source.Page[*corev1.ConfigMap]
	for _, c := range s.lists[0] {
		page.Items = append(page.Items, source.ItemOf(c))
		page.Version = c.ResourceVersion
	}
	if len(s.lists) > 1 {
		s.lists = s.lists[1:]
	}
	return page, nil
}

func (s *fakeSource) Watch(
	ctx context.Context, o source.WatchOptions,
) (source.Stream[*corev1.ConfigMap], error) {
	if o.SendInitialEvents {
		return nil, source.ErrStreamedListRefused
	}
	return &fakeStream{ctx, s.events}, nil
}

type fakeStream struct {
	ctx    context.Context
	events chan source.Event[*corev1.ConfigMap]
}

func (s *fakeStream) Next() ([]source.Event[*corev1.ConfigMap], error) {
	select {
	case e, open := <-s.events:
		if !open {
			return nil, io.EOF
		}
		return []source.Event[*corev1.ConfigMap]{e}, nil
	case <-s.ctx.Done():
		return nil, s.ctx.Err()
	}
}

func (s *fakeStream) Close() error { return nil }

func stateAt(name, version, n string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: name, ResourceVersion: version, UID: types.UID("uid-" + name),
		Labels: map[string]string{"n": n},
	}}
}

// sourced is an informer of a fakeSource that runs.
type sourced struct {
	*tidings.Informer[*corev1.ConfigMap]
	told *follow.Follower
	send func(source.EventType, *corev1.ConfigMap)
}

// runSource runs an informer of a source in a bubble.
func runSource(t *testing.T, s *fakeSource, o informerOptions, test func(i sourced)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s.events = make(chan source.Event[*corev1.ConfigMap])
		o.Name = "fakes"
		i, err := tidings.NewInformer(s, o)
		if err != nil {
			t.Fatal(err)
		}
		told := &follow.Follower{}
		newProbe(t, i, nil).handle(told.Handle, tidings.HandlerOptions{})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- i.Run(ctx) }()
		synctest.Wait()
		test(sourced{i, told, func(e source.EventType, c *corev1.ConfigMap) {
			t.Helper()
			s.events <- source.Event[*corev1.ConfigMap]{Type: e, Item: source.ItemOf(c)}
			synctest.Wait()
		}})
		stop()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
		if err := i.Run(t.Context()); !errors.Is(err, tidings.ErrRanAlready) {
			t.Errorf("Run again: %v", err)
		}
	})
}

// TestTransportOfAnInformer lists in pages of a size of its own.
func TestTransportOfAnInformer(t *testing.T) {
	s := &fakeSource{lists: [][]*corev1.ConfigMap{{stateAt("a", "1", "1")}}}
	o := informerOptions{Transport: tidings.Transport{PageSize: 7}}
	runSource(t, s, o, func(sourced) {
		if len(s.limits) != 1 || s.limits[0] != 7 {
			t.Errorf("lists with the limits %v, want one of 7", s.limits)
		}
	})
}

// TestResyncsAreSpread: the first resync comes in the second half of the period.
func TestResyncsAreSpread(t *testing.T) {
	s := &fakeSource{lists: [][]*corev1.ConfigMap{{stateAt("a", "1", "1")}}}
	runSource(t, s, informerOptions{}, func(i sourced) {
		var resyncs atomic.Int64
		count := func(e tidings.Event[*corev1.ConfigMap]) {
			if e.Resync {
				resyncs.Add(1)
			}
		}
		_, err := i.AddHandler(tidings.HandlerFunc[*corev1.ConfigMap](count), tidings.HandlerOptions{Resync: time.Minute})
		if err != nil {
			t.Error(err)
		}
		time.Sleep(30*time.Second - 1)
		synctest.Wait()
		early := resyncs.Load()
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if all := resyncs.Load(); early != 0 || all != 1 {
			t.Errorf("%d resyncs in half a period, %d in a period", early, all)
		}
	})
}
