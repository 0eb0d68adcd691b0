package contract_test

import (
	"context"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/internal/test/secrets"
)

// printed searches what is logged and shown for the content of objects.
var printed secrets.Output

// TestMain silences the default loggers: the tests make informers fail on purpose. In a bubble
// apimachinery's error handlers would sleep for years (see docs/testing.md).
func TestMain(m *testing.M) {
	utilruntime.ErrorHandlers = nil //nolint:reassign // as tests in bubbles do
	klog.SetLogger(logr.Discard())
	slog.SetDefault(printed.Logger())
	os.Exit(m.Run())
}

// logged keeps the lines of a logger.
type logged struct {
	mu    sync.Mutex
	lines []string
}

func (l *logged) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, string(line))
	return len(line), nil
}

// take returns the lines since the last call.
func (l *logged) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := l.lines
	l.lines = nil
	return lines
}

// asDefault makes the lines those of the default logger until the test ends.
func asDefault(t *testing.T) *logged {
	l, before := &logged{}, slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(l, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	return l
}

// expectLines compares how many lines there are, and a part of each.
func expectLines(t *testing.T, when string, got []string, parts ...string) {
	t.Helper()
	same := slices.EqualFunc(got, parts, strings.Contains)
	if !same {
		t.Errorf("%s %q is logged, want lines with %q", when, got, parts)
	}
}

// TestNilLoggerOfAnInformerIsTheDefaultLogger has an index function fail.
func TestNilLoggerOfAnInformerIsTheDefaultLogger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := asDefault(t)
		broken := tidings.NewIndex("broken", func(*corev1.ConfigMap) []string { panic("no index") })
		src := &fakeSource{lists: [][]*corev1.ConfigMap{{stateAt("a", "1", "1")}}}
		informer, err := tidings.NewInformer(src, tidings.InformerOptions[*corev1.ConfigMap]{
			Name: "fakes", Indexes: []*tidings.Index[*corev1.ConfigMap]{broken},
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ran := make(chan error)
		go func() { ran <- informer.Run(ctx) }()
		synctest.Wait()
		expectLines(t, "at once", l.take(), "informer=fakes index=broken")
		stop()
		if err := <-ran; err != nil {
			t.Error(err)
		}
	})
}
