package cache_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgo "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// forbidden is a server that refuses lists.
func forbidden() *script {
	return &script{list: func(metav1.ListOptions) (runtime.Object, error) { return nil, errForbidden }}
}

// runLogging runs an informer with a logger in its context.
func runLogging(t *testing.T, informer interface{ RunWithContext(context.Context) }, logger klog.Logger) {
	t.Helper()
	ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), logger))
	done := running(ctx, informer)
	t.Cleanup(func() {
		cancel()
		<-done
	})
}

// TestLoggerOfContext: the log lines of an informer go to the logger of Run's context.
func TestLoggerOfContext(t *testing.T) {
	both(t, func(t *testing.T, newInformer newInformerFunc) {
		var log, again logBuffer
		informer := newInformer(forbidden(), &corev1.Pod{}, noOptions)
		runLogging(t, informer, log.logger("of-the-context"))
		settle(time.Second)
		if text := log.String(); !strings.Contains(text, "of-the-context") || !strings.Contains(text, "forbidden") {
			t.Errorf("the log does not say that the list is forbidden:\n%s", text)
		}
		informer.RunWithContext(klog.NewContext(t.Context(), again.logger("of-the-second-run")))
		if text := again.String(); !strings.Contains(text, "of-the-second-run") || !strings.Contains(text, "Warning") {
			t.Errorf("the log of the second Run has no warning:\n%s", text)
		}
	})
}

// TestLoggerOfHandler: log lines about a handler go to its logger.
func TestLoggerOfHandler(t *testing.T) {
	both(t, func(t *testing.T, newInformer newInformerFunc) {
		var log logBuffer
		logger := log.logger("of-the-handler")
		informer := newInformer(newSource(t), &corev1.Pod{}, noOptions)
		_, err := informer.AddEventHandlerWithOptions(&recorder{}, clientgo.HandlerOptions{Logger: &logger, ResyncPeriod: new(time.Millisecond)})
		must(t, err)
		if text := log.String(); strings.Count(text, "of-the-handler") != 2 || strings.Count(text, "Warning") != 2 {
			t.Errorf("the log does not warn of a period that is too short for an informer without resyncs:\n%s", text)
		}
	})
}

// TestLoggerOfKlog: a handler without a logger uses klog's.
func TestLoggerOfKlog(t *testing.T) {
	both(t, func(t *testing.T, newInformer newInformerFunc) {
		defer klog.CaptureState().Restore()
		var log logBuffer
		klog.SetLogger(log.logger("of-klog"))
		informer := newInformer(newSource(t), &corev1.Pod{}, noOptions)
		_, err := informer.AddEventHandlerWithResyncPeriod(&recorder{}, time.Minute)
		must(t, err)
		if text := log.String(); strings.Count(text, "of-klog") != 1 {
			t.Errorf("klog has no line about a period in an informer without resyncs:\n%s", text)
		}
	})
}

// TestLoggerOfPanic: a panic of a handler without a logger goes to klog's, even though
// Run's context has one.
func TestLoggerOfPanic(t *testing.T) {
	both(t, func(t *testing.T, newInformer newInformerFunc) {
		surviving(t)
		defer klog.CaptureState().Restore()
		var ofKlog, ofContext logBuffer
		klog.SetLogger(ofKlog.logger("of-klog"))
		informer := newInformer(newSource(t, "a"), &corev1.Pod{}, noOptions)
		addHandler(t, informer, clientgo.ResourceEventHandlerFuncs{AddFunc: panickingHandler})
		runLogging(t, informer, ofContext.logger("of-the-context"))
		synctest.Wait()
		if text := ofKlog.String(); !strings.Contains(text, "Observed a panic") {
			t.Errorf("klog has no line about the panic:\n%s", text)
		}
		if text := ofContext.String(); strings.Contains(text, "Observed a panic") {
			t.Errorf("the context's logger has a line about the panic:\n%s", text)
		}
	})
}
