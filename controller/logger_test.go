package controller_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"github.com/tidings-go/tidings/controller"
)

// TestLoggerOfACall has the controller, the key and the number, however a call asks for it.
func TestLoggerOfACall(t *testing.T) {
	inWorld(t, func(w *world) {
		create(w, configMap("a", "x"))
		var lines bytes.Buffer
		var log calls
		logger := slog.New(slog.NewTextHandler(&lines, &slog.HandlerOptions{
			ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				if a.Key == slog.TimeKey {
					return slog.Attr{}
				}
				return a
			},
		}))
		c := newController(w, options{Logger: logger}, func(ctx context.Context, r request) (controller.Result, error) {
			log.add("%s", r.Key)
			if controller.Logger(ctx).Info("slog", "n", 1); r.Gone {
				return controller.Result{}, controller.Terminal(errLater)
			}
			controller.Logger(ctx).With("n", 2).WithGroup("g").Info("grouped", "m", 3)
			logr.FromContextOrDiscard(ctx).Info("logr")
			klog.FromContext(ctx).Info("klog")
			return controller.Result{}, nil
		})
		stop := start(w, c)
		log.expect(t, "a/x")
		fatal(t, w.client.CoreV1().ConfigMaps("a").Delete(w.ctx, "x", deleteNow))
		log.expect(t, "a/x")
		fatal(t, stop())
		want := []string{
			"level=INFO msg=slog controller=test key=a/x call=1 n=1",
			"level=INFO msg=grouped controller=test key=a/x call=1 n=2 g.m=3",
			"level=INFO msg=logr controller=test key=a/x call=1",
			"level=INFO msg=klog controller=test key=a/x call=1",
			"level=INFO msg=slog controller=test key=a/x call=2 n=1",
			`level=ERROR msg="a call failed, and waits for a change" controller=test key=a/x call=2 failures=1 error="not yet"`,
		}
		if got := strings.TrimSpace(lines.String()); got != strings.Join(want, "\n") {
			t.Errorf("the lines are\n%s\nwant\n%s", got, strings.Join(want, "\n"))
		}
		var numbers []uint64
		for _, call := range c.Calls("a/x") {
			numbers = append(numbers, call.Number)
		}
		if len(numbers) != 2 || numbers[0] != 2 || numbers[1] != 1 {
			t.Errorf("the numbers of the calls are %v", numbers)
		}
		if controller.Logger(t.Context()) != slog.Default() {
			t.Error("another context has a logger of a call")
		}
	})
}
