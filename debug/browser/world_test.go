package browser

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/debug"
)

var pictures = flag.String("pictures", "", "a directory for pictures of the pages")

// browserTimeout bounds a test.
const browserTimeout = 2 * time.Minute

// chromium returns the path of the browser.
func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatal("there is no Chromium in the PATH: on Debian, install it with apt-get install chromium")
	return ""
}

// silent is the refusal of a server that does not answer.
const silent = -1

// tab is a tab of a browser, with the pages of a program whose informers have some problems.
type tab struct {
	*testing.T
	context.Context
	server  *apisim.Server
	factory *tidings.Factory
	url     string

	// refusal is the status of all answers, and silent that of none; 0 answers as ever. Then the errors
	// of the console are no problems.
	refusal atomic.Int64

	mu       sync.Mutex // guards problems
	problems []string   // errors of the console, and requests to elsewhere
}

func open(t *testing.T) *tab {
	t.Helper()
	b := &tab{T: t, server: apisim.Options{}.Start(t)}
	b.program()
	b.start(browserTimeout)
	return b
}

// start starts a browser with the tab, for a time.
func (b *tab) start(timeout time.Duration) {
	b.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(chromium(b.T)))
	if os.Geteuid() == 0 { // as root, Chromium has no sandbox; in a container, little shared memory
		options = append(options, chromedp.NoSandbox, chromedp.Flag("disable-dev-shm-usage", true))
	}
	ctx, cancel := context.WithTimeout(b.T.Context(), timeout)
	b.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	b.Cleanup(cancel)
	b.Context, cancel = chromedp.NewContext(ctx)
	b.Cleanup(cancel)
	chromedp.ListenTarget(b.Context, b.listen)
	b.run(network.Enable(), runtime.Enable(), log.Enable())
	b.Cleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, problem := range b.problems {
			b.Error(problem)
		}
	})
}

// listen records the problems of a page.
func (b *tab) listen(event any) {
	problem := ""
	switch event := event.(type) {
	case *runtime.EventExceptionThrown:
		problem = "exception: " + event.ExceptionDetails.Error()
	case *runtime.EventConsoleAPICalled:
		problem = fmt.Sprintf("console: %s %v", event.Type, event.Args)
	case *log.EventEntryAdded:
		problem = fmt.Sprintf("log: %s %s %s", event.Entry.Level, event.Entry.Text, event.Entry.URL)
	case *network.EventRequestWillBeSent:
		if !strings.HasPrefix(event.Request.URL, b.url) {
			problem = "request to " + event.Request.URL
		}
	}
	if problem != "" && b.refusal.Load() == 0 {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.problems = append(b.problems, problem)
	}
}

func (b *tab) run(actions ...chromedp.Action) {
	b.Helper()
	if err := chromedp.Run(b.Context, actions...); err != nil {
		b.Fatal(err)
	}
}

// submit runs an action that leads to another page, and waits until that is loaded.
func (b *tab) submit(action chromedp.Action) {
	b.Helper()
	_, err := chromedp.RunResponse(b.Context, action)
	b.fatal(err)
}

func (b *tab) fatal(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// program starts informers, a controller, and the pages of them.
func (b *tab) program() {
	b.Helper()
	ctx := b.T.Context()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	_, err := b.server.Create(ctx, namespace)
	b.fatal(err)
	for i := range 30 {
		_, err := b.server.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprint("settings-", i)},
			Data:       map[string]string{"value": "first"},
		})
		b.fatal(err)
	}
	b.server.Inject(apisim.Match{Resource: "pods"}, apisim.Refuse(403, 0))
	quiet := slog.New(slog.DiscardHandler)
	factory, err := tidings.NewFactory(b.server.Config(), tidings.FactoryOptions{Logger: quiet})
	b.fatal(err)
	configMaps, err := tidings.For[*corev1.ConfigMap](factory, tidings.Selection{})
	b.fatal(err)
	_, err = tidings.For[*corev1.Pod](factory, tidings.Selection{})
	b.fatal(err)
	c, err := controller.New(configMaps, controller.Options[*corev1.ConfigMap]{Name: "values", Logger: quiet},
		func(_ context.Context, r controller.Request[*corev1.ConfigMap]) (controller.Result, error) {
			if r.Name() == "settings-7" {
				return controller.Result{}, errors.New("7 is not a good number")
			}
			return controller.Result{}, nil
		})
	b.fatal(err)
	manager, err := controller.NewManager(factory, controller.ManagerOptions{Logger: quiet})
	b.fatal(err)
	b.fatal(manager.AddController(c))
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- manager.Run(ctx) }()
	b.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	})
	b.serve(debug.Options{Bodies: true}, factory, manager)
	b.factory = factory
	b.fatal(factory.Start(ctx))
	b.fatal(configMaps.WaitForSync(ctx))
}

// serve serves pages.
func (b *tab) serve(o debug.Options, sources ...any) {
	b.Helper()
	pages := debug.New(o)
	b.fatal(pages.Add(sources...))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	b.fatal(err)
	mux := http.NewServeMux()
	mux.Handle("/debug/tidings/", http.StripPrefix("/debug/tidings", pages))
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch status := b.refusal.Load(); status {
		case 0:
			mux.ServeHTTP(w, r)
		case silent:
			<-r.Context().Done()
		default:
			http.Error(w, "refused", int(status))
		}
	})}
	b.url = "http://" + listener.Addr().String() + "/debug/tidings/"
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	b.Cleanup(func() {
		pages.Close()
		server.Close() //nolint:errcheck // the test is over
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			b.Error(err)
		}
	})
}

// followed waits until a view of changes follows an informer.
func (b *tab) followed() {
	until(b.Context, func() bool {
		for _, handler := range b.factory.Health()[0].Handlers {
			if handler.Name == "debug" {
				return true
			}
		}
		return false
	})
}

// until polls a condition until it is met, and reports whether it was before ctx ended.
func until(ctx context.Context, is func() bool) bool {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for !is() {
		select {
		case <-ctx.Done():
			return false
		case <-ticker.C:
		}
	}
	return true
}

// set changes a value.
func (b *tab) set(name, value string) {
	b.Helper()
	obj, err := apisim.Get[*corev1.ConfigMap](b.T.Context(), b.server, "shop", name)
	b.fatal(err)
	obj.Data["value"] = value
	_, err = apisim.Update(b.T.Context(), b.server, obj)
	b.fatal(err)
}
