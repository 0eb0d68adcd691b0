package cache_test

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clientgo "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/tidings-go/tidings/clientgo/cache"
)

// logBuffer is a log that is kept.
type logBuffer struct {
	mu  sync.Mutex // guards buf
	buf bytes.Buffer
}

func (b *logBuffer) Write(text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(text)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// logger returns a logger with a name that writes to the buffer.
func (b *logBuffer) logger(name string) klog.Logger {
	return klog.LoggerWithName(textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(b))), name)
}

// panickingHandler panics. The stack of the panic must name it.
func panickingHandler(any) { panic("the handler gave up") }

// TestPanicCrashes: a panic of a handler is reported with its stack and ends the process.
func TestPanicCrashes(t *testing.T) {
	if constructor, ok := isChild(); ok {
		synctest.Test(t, func(t *testing.T) {
			informer := constructors[constructor](newSource(t, "a"), &corev1.Pod{}, noOptions)
			addHandler(t, informer, clientgo.ResourceEventHandlerFuncs{AddFunc: panickingHandler})
			informer.RunWithContext(t.Context())
		})
		return
	}
	for constructor := range constructors {
		t.Run(constructor, func(t *testing.T) {
			wantCrash(t, "TestPanicCrashes", constructor, "Observed a panic", "the handler gave up", "panickingHandler")
		})
	}
}

// wantCrash runs a test as a child process, which must crash with texts in its output.
func wantCrash(t *testing.T, test, part string, texts ...string) {
	t.Helper()
	output, code := runChild(t, test, part)
	if code == 0 {
		t.Error("the process did not crash")
	}
	for _, text := range texts {
		if !strings.Contains(output, text) {
			t.Errorf("the output does not say %q:\n%s", text, output)
		}
	}
}

// surviving keeps panics from ending the process until the test ends.
func surviving(t *testing.T) {
	t.Helper()
	crash := utilruntime.ReallyCrash
	utilruntime.ReallyCrash = false
	t.Cleanup(func() { utilruntime.ReallyCrash = crash })
}

// TestPanicSurvived: if panics do not crash the process, the notification is lost, the handler's
// logger logs the panic, and the next notification comes after a second. Other handlers are not
// affected.
func TestPanicSurvived(t *testing.T) {
	both(t, func(t *testing.T, newInformer newInformerFunc) {
		surviving(t)
		source := newSource(t, "a")
		informer := newInformer(source, &corev1.Pod{}, noOptions)
		var log logBuffer
		logger := log.logger("mine")
		var other recorder
		updates := newClock()
		_, err := informer.AddEventHandlerWithOptions(clientgo.ResourceEventHandlerFuncs{
			AddFunc: panickingHandler, UpdateFunc: updates.OnUpdate, DeleteFunc: panickingHandler,
		}, clientgo.HandlerOptions{Logger: &logger})
		must(t, err)
		addHandler(t, informer, &other)
		runSynced(t, informer)
		source.Modify(newPod("a")) // delivered a second after the panic
		source.Modify(newPod("a")) // delivered at once
		source.Delete(newPod("a"))
		source.Add(newPod("a"))
		source.Modify(newPod("a")) // delivered a second after each of two more panics
		other.want(t, "add default/a 1 initial", "update default/a 1→2", "update default/a 2→3", "delete default/a 4", "add default/a 5", "update default/a 5→6")
		settle(time.Minute)
		if got := updates.seconds(); len(got) != 3 || got[0] != 1 || got[1] != 1 || got[2] != 3 {
			t.Errorf("the updates came at the seconds %v, want 1, 1 and 3", got)
		}
		if n := strings.Count(log.String(), `"Observed a panic" logger="mine" panic="the handler gave up"`); n != 3 {
			t.Errorf("%d panics were logged, want 3:\n%s", n, log.String())
		}
	})
}

// TestPanicOfInitialAdd: if panics do not crash the process, a handler that panics on an initial
// add is synced after its initial adds. (In client-go it never is.)
func TestPanicOfInitialAdd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		surviving(t)
		informer := cache.NewSharedIndexInformer(newSource(t, "a", "b"), &corev1.Pod{}, 0, nil)
		registration, err := informer.AddEventHandlerWithOptions(clientgo.ResourceEventHandlerFuncs{AddFunc: panickingHandler},
			clientgo.HandlerOptions{Logger: new(klog.FromContext(quiet(t)))})
		must(t, err)
		runSynced(t, informer)
		if registration.HasSynced() {
			t.Error("the handler has synced within the pause before its second add")
		}
		settle(time.Second)
		if !registration.HasSynced() {
			t.Error("the handler has not synced")
		}
	})
}

// TestPanicOfServerSurvived: if panics do not crash the process, the informer lists again after a
// panic of the lister, of the watcher or of the watch error handler.
func TestPanicOfServerSurvived(t *testing.T) {
	for name, panicking := range map[string]func(*script, clientgo.SharedIndexInformer){
		"list": func(s *script, _ clientgo.SharedIndexInformer) {
			s.list = func(metav1.ListOptions) (runtime.Object, error) {
				s.list = nil
				panic("the lister gave up")
			}
		},
		"watch": func(s *script, _ clientgo.SharedIndexInformer) {
			answer := s.watch
			s.watch = func(metav1.ListOptions) (watch.Interface, error) {
				s.watch = answer
				panic("the watcher gave up")
			}
		},
		"watch error handler": func(s *script, informer clientgo.SharedIndexInformer) {
			s.list = func(metav1.ListOptions) (runtime.Object, error) {
				s.list = nil
				return nil, errForbidden
			}
			if err := informer.SetWatchErrorHandler(func(*clientgo.Reflector, error) { panic("the handler gave up") }); err != nil {
				panic(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, newInformer newInformerFunc) {
				surviving(t)
				server := &script{watch: opens(time.Hour, added(versioned("a", "2")))}
				informer := newInformer(server, &corev1.Pod{}, noOptions)
				panicking(server, informer)
				handler := record(t, informer)
				run(t, informer)
				time.Sleep(time.Minute)
				waitForSync(t, informer)
				handler.want(t, "add default/a 2")
			})
		})
	}
}

// TestPanicsOfServerSurvived: where each list panics and panics are survived, the informer goes
// on, and everything ends when it is stopped.
func TestPanicsOfServerSurvived(t *testing.T) {
	bubble(t, func(t *testing.T) {
		surviving(t)
		lists := 0
		informer := cache.NewSharedIndexInformer(&script{list: func(metav1.ListOptions) (runtime.Object, error) {
			lists++
			panic("the lister gave up")
		}}, &corev1.Pod{}, time.Minute, nil)
		registration := addHandler(t, informer, &recorder{})
		stop := run(t, informer)
		settle(10 * time.Second)
		if informer.IsStopped() || lists < 2 {
			t.Errorf("stopped %t after %d lists, want more lists", informer.IsStopped(), lists)
		}
		stop()
		<-registration.(interface{ ShutdownChan() <-chan struct{} }).ShutdownChan()
	})
}
