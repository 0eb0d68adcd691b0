package contract_test

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/clientgo/cache"
	"github.com/tidings-go/tidings/clientgo/dynamicinformer"
	"github.com/tidings-go/tidings/clientgo/informers"
	"github.com/tidings-go/tidings/clientgo/metadatainformer"
	"github.com/tidings-go/tidings/controller"
)

// fault tries a fault of a server with a number.
func fault(f func(n int64) apisim.Fault) func(b *bubble, n int64) error {
	return func(b *bubble, n int64) error {
		b.must(b.start(apisim.Options{}))
		var made apisim.Fault
		if err := panicOf(func() { made = f(n) }); err != nil {
			return err
		}
		b.server.Inject(apisim.Match{Resource: "configmaps", Times: 2}, made)
		return b.follow(tidings.FactoryOptions{}, tidings.HandlerOptions{}, n == math.MaxInt64)
	}
}

// ofFrame and ofTime are faults with one number.
func ofFrame(f func(frame int) apisim.Fault) func(b *bubble, n int64) error {
	return fault(func(n int64) apisim.Fault { return f(int(n)) })
}

func ofTime(f func(d time.Duration) apisim.Fault) func(b *bubble, n int64) error {
	return fault(func(n int64) apisim.Fault { return f(time.Duration(n)) })
}

// dropIn tries a resync period of a factory of the drop-ins.
func dropIn(informer func(b *bubble, resync time.Duration) cache.SharedIndexInformer) func(b *bubble, n int64) error {
	return func(b *bubble, n int64) error {
		b.must(b.start(apisim.Options{}))
		i := informer(b, time.Duration(n))
		var seen, updates atomic.Int64
		_, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { seen.Add(1) },
			UpdateFunc: func(any, any) { b.mostCalls(&updates) },
		})
		b.must(err)
		b.run(time.Minute, func(ctx context.Context) error { i.RunWithContext(ctx); return nil })
		if seen.Load() != 1 {
			b.Errorf("the handler has seen %d objects", seen.Load())
		}
		return nil
	}
}

// parameters are functions of which a number is tried.
var parameters = map[string]func(b *bubble, n int64) error{
	"apisim.ApplyLater(d)":       ofTime(func(d time.Duration) apisim.Fault { return apisim.ApplyLater(d, 504) }),
	"apisim.ApplyLater(code)":    ofFrame(func(code int) apisim.Fault { return apisim.ApplyLater(time.Second, code) }),
	"apisim.CutAfter(frame)":     ofFrame(apisim.CutAfter),
	"apisim.CutBefore(frame)":    ofFrame(apisim.CutBefore),
	"apisim.CutLater(d)":         ofTime(apisim.CutLater),
	"apisim.CutWithin(frame)":    ofFrame(apisim.CutWithin),
	"apisim.Delay(d)":            ofTime(apisim.Delay),
	"apisim.Duplicate(frame)":    ofFrame(apisim.Duplicate),
	"apisim.Fail(code)":          ofFrame(func(code int) apisim.Fault { return apisim.Fail(1, code) }),
	"apisim.Fail(frame)":         ofFrame(func(frame int) apisim.Fault { return apisim.Fail(frame, 500) }),
	"apisim.FailLater(code)":     ofFrame(func(code int) apisim.Fault { return apisim.FailLater(time.Second, code) }),
	"apisim.FailLater(d)":        ofTime(func(d time.Duration) apisim.Fault { return apisim.FailLater(d, 500) }),
	"apisim.Garble(frame)":       ofFrame(apisim.Garble),
	"apisim.Inflate(bytes)":      ofFrame(func(n int) apisim.Fault { return apisim.Inflate(1, n) }),
	"apisim.Inflate(frame)":      ofFrame(func(frame int) apisim.Fault { return apisim.Inflate(frame, 1000) }),
	"apisim.Match.Nth(n)":        useNth,
	"apisim.Refuse(code)":        ofFrame(func(code int) apisim.Fault { return apisim.Refuse(code, 0) }),
	"apisim.Refuse(retryAfter)":  ofTime(func(d time.Duration) apisim.Fault { return apisim.Refuse(503, d) }),
	"apisim.RefuseApplied(code)": ofFrame(apisim.RefuseApplied),
	"apisim.Reorder(frame)":      ofFrame(apisim.Reorder),
	"apisim.Stall(d)":            ofTime(func(d time.Duration) apisim.Fault { return apisim.Stall(1, d) }),
	"apisim.Stall(frame)":        ofFrame(func(frame int) apisim.Fault { return apisim.Stall(frame, time.Minute) }),
	"apisim.Truncate(frame)":     ofFrame(apisim.Truncate),
	"apisim.Instance.SetLag(lag)": func(b *bubble, n int64) error {
		b.must(b.start(apisim.Options{}))
		instance := b.server.AddInstance()
		if err := panicOf(func() { instance.SetLag(time.Duration(n)) }); err != nil {
			return err
		}
		return b.follow(tidings.FactoryOptions{}, tidings.HandlerOptions{}, false)
	},
	"clientgo/cache.NewSharedIndexInformer(defaultEventHandlerResyncPeriod)": dropIn(func(b *bubble, resync time.Duration) cache.SharedIndexInformer {
		client, err := kubernetes.NewForConfig(b.server.Config())
		b.must(err)
		lw := cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "configmaps", "a", fields.Everything())
		return cache.NewSharedIndexInformer(lw, &corev1.ConfigMap{}, resync, nil)
	}),
	"clientgo/informers.NewSharedInformerFactory(defaultResync)": dropIn(func(b *bubble, resync time.Duration) cache.SharedIndexInformer {
		client, err := kubernetes.NewForConfig(b.server.Config())
		b.must(err)
		return informers.NewSharedInformerFactory(client, resync).Core().V1().ConfigMaps().Informer()
	}),
	"clientgo/dynamicinformer.NewDynamicSharedInformerFactory(defaultResync)": dropIn(func(b *bubble, resync time.Duration) cache.SharedIndexInformer {
		client, err := dynamic.NewForConfig(b.server.Config())
		b.must(err)
		return dynamicinformer.NewDynamicSharedInformerFactory(client, resync).ForResource(configMaps).Informer()
	}),
	"clientgo/metadatainformer.NewSharedInformerFactory(defaultResync)": dropIn(func(b *bubble, resync time.Duration) cache.SharedIndexInformer {
		client, err := metadata.NewForConfig(b.server.Config())
		b.must(err)
		return metadatainformer.NewSharedInformerFactory(client, resync).ForResource(configMaps).Informer()
	}),
	"controller.RetryAfter(d)": func(b *bubble, n int64) error {
		calls := 0
		return b.reconcile(calm, controller.GuardOptions{}, func(context.Context, request) (controller.Result, error) {
			if calls++; calls > 10 {
				return controller.Result{}, nil
			}
			return controller.Result{}, controller.RetryAfter(errors.New("it fails"), time.Duration(n))
		})
	},
	"controller.Controller.SetWorkers(n)": func(b *bubble, n int64) error {
		b.must(b.start(apisim.Options{}))
		factory, err := tidings.NewFactory(b.server.Config(), tidings.FactoryOptions{Logger: discard})
		b.must(err)
		informer, err := tidings.For[*corev1.ConfigMap](factory, tidings.Selection{})
		b.must(err)
		c, err := controller.New(informer, controller.Options[*corev1.ConfigMap]{Name: "test", Logger: discard},
			func(context.Context, request) (controller.Result, error) { return controller.Result{}, nil })
		b.must(err)
		if err := c.SetWorkers(int(n)); err != nil {
			return err
		}
		b.must(factory.Start(b.ctx))
		b.run(time.Minute, func(ctx context.Context) error { return ended(ctx, c.Run(ctx)) })
		b.stop(factory.Shutdown)
		return nil
	},
}

func useNth(b *bubble, n int64) error {
	b.must(b.start(apisim.Options{}))
	var match apisim.Match
	if err := panicOf(func() { match = apisim.Match{Resource: "configmaps"}.Nth(int(n)) }); err != nil {
		return err
	}
	b.server.Inject(match, apisim.Delay(time.Second))
	return b.follow(tidings.FactoryOptions{}, tidings.HandlerOptions{}, false)
}
