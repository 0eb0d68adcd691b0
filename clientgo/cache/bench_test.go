package cache_test

import (
	"context"
	"fmt"
	"runtime/debug"
	"strconv"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	clientgo "k8s.io/client-go/tools/cache"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/clientgo/cache"
	"github.com/tidings-go/tidings/clientgo/internal/listwatch"
	"github.com/tidings-go/tidings/clientgo/internal/sharedinformer"
	"github.com/tidings-go/tidings/source"
)

const (
	benchKeys  = 10_000
	benchBatch = 100   // events that arrive together
	benchRound = 5_000 // events after which the benchmark waits
)

// feed yields updates of pods from memory, to any of the informers.
type feed struct {
	pods   []*corev1.Pod
	events chan []source.Event[*corev1.Pod]
}

// newFeed makes the events of a benchmark beforehand, every one with an object of its
// own.
func newFeed(events int) *feed {
	f := &feed{events: make(chan []source.Event[*corev1.Pod], events/benchBatch+1)}
	for i := range benchKeys {
		f.pods = append(f.pods, benchPod(i, i+1))
	}
	version := benchKeys
	for events > 0 {
		n := min(events, benchBatch)
		batch := make([]source.Event[*corev1.Pod], n)
		for i := range batch {
			version++
			batch[i] = source.Event[*corev1.Pod]{Type: source.Modified, Item: source.ItemOf(benchPod(version%benchKeys, version))}
		}
		f.events <- batch
		events -= n
	}
	return f
}

func benchPod(n, version int) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: fmt.Sprintf("ns-%d", n%20), Name: fmt.Sprintf("pod-%d", n),
		UID: types.UID(strconv.Itoa(n)), ResourceVersion: strconv.Itoa(version),
		Labels: map[string]string{"app": strconv.Itoa(n % 100)},
	}}
}

func (f *feed) List(context.Context, source.ListOptions) (source.Page[*corev1.Pod], error) {
	page := source.Page[*corev1.Pod]{Version: strconv.Itoa(benchKeys)}
	for _, pod := range f.pods {
		page.Items = append(page.Items, source.ItemOf(pod))
	}
	return page, nil
}

func (f *feed) Watch(ctx context.Context, o source.WatchOptions) (source.Stream[*corev1.Pod], error) {
	if o.SendInitialEvents {
		return nil, source.ErrStreamedListRefused
	}
	return feedStream{ctx, f.events}, nil
}

type feedStream struct {
	ctx    context.Context
	events <-chan []source.Event[*corev1.Pod]
}

func (s feedStream) Close() error { return nil }

func (s feedStream) Next() ([]source.Event[*corev1.Pod], error) {
	select {
	case batch := <-s.events:
		return batch, nil
	case <-s.ctx.Done():
		return nil, s.ctx.Err()
	}
}

// listerWatcher is the feed as a ListerWatcher of client-go.
func (f *feed) listerWatcher() clientgo.ListerWatcher {
	return pagesOnly{&clientgo.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(benchKeys)}}
			for _, pod := range f.pods {
				list.Items = append(list.Items, *pod)
			}
			return list, nil
		},
		WatchFuncWithContext: func(ctx context.Context, _ metav1.ListOptions) (watch.Interface, error) {
			// A real watch decodes on a goroutine and hands on through a channel too.
			w := watch.NewFake()
			go func() {
				for {
					select {
					case batch := <-f.events:
						for i := range batch {
							w.Modify(batch[i].Object)
						}
					case <-ctx.Done():
						return
					}
				}
			}()
			return w, nil
		},
	}}
}

// pagesOnly declares that the list cannot be streamed.
type pagesOnly struct{ *clientgo.ListWatch }

func (pagesOnly) IsWatchListSemanticsUnSupported() bool { return true }

// updater starts an informer whose handler calls a function for each update. It returns when the
// informer is synced, and the function that waits for its end.
type updater func(ctx context.Context, b *testing.B, f *feed, handle func()) (wait func())

// BenchmarkUpdates passes updates from memory through an informer of 10,000 pods to a handler: the
// native informer, and the drop-in with a source of our own, as with a clientset, and with a lister
// and watcher. The module bench compares them with client-go.
func BenchmarkUpdates(b *testing.B) {
	for _, way := range []struct {
		name string
		run  updater
	}{
		{"native", runNative},
		{"drop-in", func(ctx context.Context, b *testing.B, f *feed, handle func()) func() {
			return runShared(ctx, b, sharedinformer.New(sharedinformer.Options{
				Source: listwatch.Untyped(source.Source[*corev1.Pod](f), nil), Example: &corev1.Pod{},
			}), handle)
		}},
		{"drop-in with a lister and watcher", func(ctx context.Context, b *testing.B, f *feed, handle func()) func() {
			return runShared(ctx, b, cache.NewSharedIndexInformer(f.listerWatcher(), &corev1.Pod{}, 0, nil), handle)
		}},
	} {
		b.Run("1 handlers/"+way.name, func(b *testing.B) { benchUpdates(b, way.run) })
	}
}

func benchUpdates(b *testing.B, run updater) {
	f := newFeed(b.N)
	events := f.events
	f.events = make(chan []source.Event[*corev1.Pod])
	ctx, cancel := context.WithCancel(b.Context())
	var called sync.WaitGroup
	wait := run(ctx, b, f, called.Done)
	// The collector would spend its time on the events that were made beforehand.
	// Its cost is in proportion to the allocated bytes, which are reported.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	b.ReportAllocs()
	b.ResetTimer()
	// In rounds, so that no handler falls so far behind that its updates fold.
	for left := b.N; left > 0; left -= benchRound {
		n := min(left, benchRound)
		called.Add(n)
		for range (n + benchBatch - 1) / benchBatch {
			f.events <- <-events
		}
		called.Wait()
	}
	b.StopTimer()
	cancel()
	wait()
}

func runNative(ctx context.Context, b *testing.B, f *feed, handle func()) func() {
	i, err := tidings.NewInformer(source.Source[*corev1.Pod](f), tidings.InformerOptions[*corev1.Pod]{})
	if err != nil {
		b.Fatal(err)
	}
	r, err := i.AddHandler(tidings.Funcs[*corev1.Pod]{OnUpdate: func(_, _ *corev1.Pod) { handle() }}, tidings.HandlerOptions{})
	if err != nil {
		b.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		if err := i.Run(ctx); err != nil {
			b.Error(err)
		}
	})
	<-r.Synced()
	return running.Wait
}

func runShared(ctx context.Context, b *testing.B, i clientgo.SharedIndexInformer, handle func()) func() {
	r, err := i.AddEventHandler(clientgo.ResourceEventHandlerFuncs{UpdateFunc: func(_, _ any) { handle() }})
	if err != nil {
		b.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() { i.RunWithContext(ctx) })
	<-r.HasSyncedChecker().Done()
	return running.Wait
}
