package debug

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/controller"
)

// world has a server and a program with informers of ConfigMaps, Secrets and forbidden Pods, a
// handler that is slow for the value "second", and a controller that labels ConfigMaps.
type world struct {
	*testing.T
	server *apisim.Server
	pages  *Handler
	o      Options
	shown  []any // the sources of the pages
}

const secretText = "the-content-of-a-secret"

// inWorld runs a test in a bubble.
func inWorld(t *testing.T, o Options, test func(w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, server: apisim.Options{}.Start(t), o: o}
		w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
		for i := range 3 {
			w.create(&corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: fmt.Sprint("c", i)},
				Data:       map[string]string{"value": "first"},
			})
		}
		w.create(&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "c0",
				Annotations: map[string]string{"copy": secretText}},
			Data: map[string][]byte{"password": []byte(secretText)},
		})
		w.server.Inject(apisim.Match{Resource: "pods"}, apisim.Refuse(403, 0))
		ctx, stop := context.WithCancel(t.Context())
		manager := w.program()
		ended := make(chan error, 1)
		go func() { ended <- manager.Run(ctx) }()
		w.pass(5 * time.Second)
		w.pages = New(w.o)
		w.fatal(w.pages.Add(w.shown...))
		w.get("/")
		test(w)
		w.pages.Close()
		stop()
		w.fatal(<-ended)
	})
}

// program makes the informers and the controller.
func (w *world) program() *controller.Manager {
	config := w.server.Config()
	quiet := slog.New(slog.DiscardHandler)
	options := tidings.FactoryOptions{Logger: quiet}
	options.Transport.Recorder = w.o.Recorder
	factory, err := tidings.NewFactory(config, options)
	w.fatal(err)
	configMaps, err := tidings.For[*corev1.ConfigMap](factory, tidings.Selection{})
	w.fatal(err)
	_, err = tidings.For[*corev1.Secret](factory, tidings.Selection{})
	w.fatal(err)
	_, err = tidings.For[*corev1.Pod](factory, tidings.Selection{})
	w.fatal(err)
	w.fatal(configMaps.IndexLabels("app"))
	_, err = configMaps.AddHandler(tidings.Funcs[*corev1.ConfigMap]{
		OnUpdate: func(_, now *corev1.ConfigMap) {
			if now.Data["value"] == "second" {
				time.Sleep(10 * time.Second)
			}
		},
	}, tidings.HandlerOptions{Name: "slow"})
	w.fatal(err)
	guard, err := controller.NewGuard(config, controller.GuardOptions{})
	w.fatal(err)
	client, err := kubernetes.NewForConfig(guard.Config())
	w.fatal(err)
	c, err := controller.New(configMaps, controller.Options[*corev1.ConfigMap]{
		Name: "labels", Guard: guard, Logger: quiet, FirstDelay: time.Hour,
	}, func(ctx context.Context, r controller.Request[*corev1.ConfigMap]) (controller.Result, error) {
		switch {
		case r.Gone || r.Object.Labels["app"] == r.Object.Data["value"]:
			return controller.Result{}, nil
		case r.Object.Data["value"] == "bad":
			return controller.Result{}, errors.New("a bad value")
		}
		next := r.Object.DeepCopy()
		next.Labels = map[string]string{"app": next.Data["value"]}
		_, err := client.CoreV1().ConfigMaps(next.Namespace).Update(ctx, next, metav1.UpdateOptions{})
		return controller.Result{}, err
	})
	w.fatal(err)
	m, err := controller.NewManager(factory, controller.ManagerOptions{
		Guard: guard, Election: &controller.Election{Namespace: "a", Name: "labels", Identity: "me"},
		Logger: quiet,
	})
	w.fatal(err)
	w.fatal(m.AddController(c))
	w.shown = []any{factory, m}
	return m
}

func (w *world) fatal(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) create(obj runtime.Object) {
	w.Helper()
	_, err := w.server.Create(w.Context(), obj)
	w.fatal(err)
}

// set changes the value of a ConfigMap.
func (w *world) set(name, value string) {
	w.Helper()
	obj, err := apisim.Get[*corev1.ConfigMap](w.Context(), w.server, "a", name)
	w.fatal(err)
	obj.Data["value"] = value
	obj.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: `{"metadata":{},"data":{"value":"` + value + `"}}`}
	_, err = apisim.Update(w.Context(), w.server, obj)
	w.fatal(err)
}

// pass waits in virtual time.
func (w *world) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// aids are the parts of a page for narrow screens, and explanations, which tests of its content leave
// out.
var aids = regexp.MustCompile(`<wbr>|<div>|</div>| data-label="[^"]*"|<abbr title="[^"]*">|</abbr>`)

// get returns a page without aids.
func (w *world) get(path string) string {
	w.Helper()
	answer := httptest.NewRecorder()
	w.pages.ServeHTTP(answer, request(path))
	if answer.Code != http.StatusOK {
		w.Fatalf("%s: %d %s", path, answer.Code, answer.Body)
	}
	return aids.ReplaceAllString(answer.Body.String(), "")
}

func request(path string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Host = "localhost:8085"
	return r
}

// json decodes the JSON form of a page.
func getJSON[F any](w *world, path string) F {
	w.Helper()
	separator := "?"
	if strings.Contains(path, "?") {
		separator = "&"
	}
	var figures F
	decoder := json.NewDecoder(strings.NewReader(w.get(path + separator + "format=json")))
	w.fatal(decoder.Decode(&figures))
	return figures
}

// has checks that a page has some texts, or that it lacks them.
func (w *world) has(path string, want bool, texts ...string) {
	w.Helper()
	page := w.get(path)
	for _, text := range texts {
		if strings.Contains(page, text) != want {
			w.Errorf("%s has %q: %t, want %t:\n%s", path, text, !want, want, page)
		}
	}
}
