package controller_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"

	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/source"
)

// panics is an option each of whose functions panics.
type panics struct{ workqueue.MetricsProvider }

func (panics) When(string) time.Duration                   { panic("no limiter") }
func (panics) Forget(string)                               { panic("no limiter") }
func (panics) NumRequeues(string) int                      { panic("no limiter") }
func (panics) NewDepthMetric(string) workqueue.GaugeMetric { panic("no metrics") }
func (panics) Start(context.Context, string, ...slog.Attr) (context.Context, source.Span) {
	panic("no tracer")
}

// TestC13_PanicsOfOptions: the option is named in health, and the calls go on without it.
func TestC13_PanicsOfOptions(t *testing.T) {
	for name, o := range map[string]options{
		"RateLimiter": {RateLimiter: panics{}},
		"Metrics":     {Metrics: panics{}},
		"Tracer":      {Tracer: panics{}},
		"Flow":        {Flow: func(string) string { panic("no flow") }},
		"Ignore":      {Ignore: func(_, _ *corev1.ConfigMap) bool { panic("no ignoring") }},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				x := create(w, withState(configMap("a", "x"), "1"))
				var log calls
				c := newController(w, o, func(_ context.Context, r request) (controller.Result, error) {
					log.add("%s, failures %d", r.Object.Data["state"], r.Failures)
					if r.Failures == 0 {
						return controller.Result{}, errLater
					}
					return controller.Result{}, nil
				})
				stop := start(w, c)
				time.Sleep(time.Second)
				update(w, withState(x, "2"))
				time.Sleep(time.Second)
				synctest.Wait()
				log.expect(t, "1, failures 0", "1, failures 1", "2, failures 0", "2, failures 1")
				if h := c.Health(); !slices.ContainsFunc(h.Mappings, func(f controller.MappingFailure) bool {
					return strings.HasPrefix(f.Error, "Options."+name+" panicked")
				}) {
					t.Errorf("health has the failures %+v", h.Mappings)
				}
				fatal(t, stop())
			})
		})
	}
}
