package footprint_test

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/internal/see/footprint"
	"github.com/tidings-go/tidings/internal/see/inspect"
	"github.com/tidings-go/tidings/source"
)

const pods = 50_000

// podsSource lists pods, 40 of each workload.
type podsSource int

func (n podsSource) List(context.Context, source.ListOptions) (source.Page[*corev1.Pod], error) {
	page := source.Page[*corev1.Pod]{Version: "1"}
	for i := range int(n) {
		p := pod(i)
		page.Items = append(page.Items, source.Item[*corev1.Pod]{
			Key: p.Namespace + "/" + p.Name, Version: p.ResourceVersion, UID: string(p.UID), Object: p,
		})
	}
	return page, nil
}

func (podsSource) Watch(ctx context.Context, o source.WatchOptions) (source.Stream[*corev1.Pod], error) {
	if o.SendInitialEvents {
		return nil, source.ErrStreamedListRefused
	}
	return quiet{ctx}, nil
}

// quiet is a watch that brings nothing.
type quiet struct{ ctx context.Context }

func (q quiet) Next() ([]source.Event[*corev1.Pod], error) {
	<-q.ctx.Done()
	return nil, io.EOF
}

func (quiet) Close() error { return nil }

func pod(i int) *corev1.Pod {
	workload := fmt.Sprint("workload-", i/40)
	at := metav1.NewTime(time.Unix(int64(1_700_000_000+i), 0))
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: fmt.Sprint("team-", i/40%30), Name: fmt.Sprintf("%s-5f7d8c9b4-%05d", workload, i),
		UID: types.UID(fmt.Sprintf("0f8e7d6c-0000-0000-0000-%012d", i)), ResourceVersion: strconv.Itoa(1000 + i),
		CreationTimestamp: at,
		Labels:            map[string]string{"app": workload, "pod-template-hash": "5f7d8c9b4"},
		OwnerReferences:   []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: workload + "-5f7d8c9b4"}},
		ManagedFields: []metav1.ManagedFieldsEntry{{
			Manager: "kubelet", Operation: "Update", Time: &at,
			FieldsV1: metav1.NewFieldsV1(`{"f:status":{"f:conditions":{"k:{\"type\":\"Ready\"}":{"f:status":{}}}}}`),
		}},
	}}
	p.Spec.NodeName = fmt.Sprint("node-", i%500)
	for _, name := range []string{"main", "proxy"} {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{
			Name: name, Image: "registry.example.com/" + workload + "/" + name + ":v1.2.3",
			Args: []string{"--listen=:8080", "--log-level=info"},
			Env:  []corev1.EnvVar{{Name: "REGION", Value: "eu-west-1"}},
		})
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: name, Ready: true, ContainerID: fmt.Sprintf("containerd://%064d", i),
		})
	}
	p.Status.PodIP = fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255)
	return p
}

func live() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// TestEstimateIsWhatTheHeapHas compares the estimate for 50,000 pods with the growth of the heap.
func TestEstimateIsWhatTheHeapHas(t *testing.T) {
	for _, sharing := range []tidings.Sharing{tidings.ShareAll, tidings.ShareNothing} {
		before := live()
		table := &source.Table{}
		informer, err := tidings.NewInformer(podsSource(pods), tidings.InformerOptions[*corev1.Pod]{
			Transport: tidings.Transport{Sharing: sharing, Table: table},
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := informer.IndexLabels("app"); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- informer.Run(ctx) }()
		if err := informer.WaitForSync(ctx); err != nil {
			t.Fatal(err)
		}
		heap := live() - before
		views, ok := inspect.ViewsOf(informer)
		if !ok || len(views) != 1 {
			t.Fatalf("the informer has %d views", len(views))
		}
		began := time.Now()
		m := footprint.Of(views[0])
		t.Logf("sharing %d: the heap has %d bytes; the estimate took %v: %+v", sharing, heap, time.Since(began), m)
		if 4*m.Bytes < 3*heap || 3*m.Bytes > 4*heap {
			t.Errorf("sharing %d: the heap has %d bytes, the estimate is %d", sharing, heap, m.Bytes)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		runtime.KeepAlive(table)
	}
}

// TestInformerWithoutObjects measures the memory of running informers, with and without a handler.
func TestInformerWithoutObjects(t *testing.T) {
	const informers = 500
	memory := func() int {
		before := live()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return before + int(m.StackInuse)
	}
	for handlers := range 2 {
		var running sync.WaitGroup
		ctx, stop := context.WithCancel(t.Context())
		before, goroutines := memory(), runtime.NumGoroutine()
		var all []*tidings.Informer[*corev1.Pod]
		for range informers {
			informer, err := tidings.NewInformer(podsSource(0), tidings.InformerOptions[*corev1.Pod]{
				Transport: tidings.Transport{Sharing: tidings.ShareNothing},
			})
			if err != nil {
				t.Fatal(err)
			}
			for range handlers {
				if _, err := informer.AddHandler(tidings.Funcs[*corev1.Pod]{OnAdd: func(*corev1.Pod, bool) {}},
					tidings.HandlerOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			running.Go(func() { _ = informer.Run(ctx) })
			all = append(all, informer)
		}
		for _, informer := range all {
			if err := informer.WaitForSync(ctx); err != nil {
				t.Fatal(err)
			}
		}
		each := (memory() - before) / informers
		t.Logf("%d handlers: %d bytes and %d goroutines for each informer", handlers, each,
			(runtime.NumGoroutine()-goroutines)/informers)
		if each > 64<<10 {
			t.Errorf("%d handlers: an informer takes %d bytes, want at most 64 KiB", handlers, each)
		}
		stop()
		running.Wait()
	}
}
