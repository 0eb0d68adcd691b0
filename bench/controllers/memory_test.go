package controllers

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/bench/internal/measure"
	"github.com/tidings-go/tidings/bench/internal/objects"
	"github.com/tidings-go/tidings/bench/internal/server"
	"github.com/tidings-go/tidings/controller"
)

// keyMemory measures the memory of Tidings' controller per key: after a call for each, and when
// each is held back because its write does not show in the cache. The benchmarks of the queue
// measure queued keys, with those of the other queues.
func keyMemory(t *testing.T) (costs []cost) {
	for _, n := range pick([]int{300}, []int{10_000}, []int{100_000, 1_000_000}) {
		costs = append(costs, memoryOf(t, n)...)
	}
	return costs
}

func memoryOf(t *testing.T, n int) []cost {
	config := served{Encoded: &server.Spec{
		Kind: objects.Deployments, Objects: n, Encoding: server.Protobuf,
	}}.start(t)
	factory, err := tidings.NewFactory(config, tidings.FactoryOptions{})
	fatal(t, err)
	guard, err := controller.NewGuard(config, controller.GuardOptions{})
	fatal(t, err)
	clients, err := kubernetes.NewForConfig(guard.Config())
	fatal(t, err)
	deployments, err := tidings.For[*appsv1.Deployment](factory, tidings.Selection{
		Drop: []string{"spec", "metadata.managedFields"}, // a million objects have to fit
	})
	fatal(t, err)
	ctx, stop := context.WithCancel(t.Context())
	fatal(t, factory.Start(ctx))
	fatal(t, deployments.WaitForSync(ctx))
	var calls atomic.Int64
	var writes atomic.Bool
	called := make(chan struct{}, 2)
	c, err := controller.New(deployments, controller.Options[*appsv1.Deployment]{
		Name: "keys", Workers: 8, Guard: guard, Logger: slog.New(slog.DiscardHandler),
	}, func(
		ctx context.Context, r controller.Request[*appsv1.Deployment],
	) (result controller.Result, err error) {
		if writes.Load() {
			_, err = typedClient{clients}.updateStatus(ctx, r.Object)
			result.RequeueAfter = time.Nanosecond
		}
		if calls.Add(1)%int64(n) == 0 {
			called <- struct{}{}
		}
		return result, err
	})
	fatal(t, err)
	before := measure.LiveHeap()
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	perKey := func() string {
		return fmt.Sprintf("%.0f B", (measure.LiveHeap()-before)/float64(n))
	}
	await(t, called, "the objects have no calls")
	idle := perKey()
	writes.Store(true)
	for key := range deployments.Lister().All() {
		c.Enqueue(key)
	}
	await(t, called, "the objects have no second calls")
	for begun := time.Now(); c.Health().ParkedKeys < n; time.Sleep(10 * time.Millisecond) {
		if time.Since(begun) > waitLimit {
			t.Fatalf("after %v: %d of %d keys are held back", waitLimit, c.Health().ParkedKeys, n)
		}
	}
	held := perKey()
	stop()
	fatal(t, <-ended)
	fatal(t, factory.Shutdown(context.Background()))
	name := fmt.Sprintf("%d keys", n)
	return []cost{
		{"memory of a key after its call, " + name, "", map[string]string{ours.name: idle}},
		{"memory of a key that is held back, " + name, "", map[string]string{ours.name: held}},
	}
}
