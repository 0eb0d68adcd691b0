package secrets

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/metrics"
	"k8s.io/klog/v2"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/clientgo/cache"
	"github.com/tidings-go/tidings/clientgo/informers"
	"github.com/tidings-go/tidings/debug"
	"github.com/tidings-go/tidings/flight"
)

var secretsResource = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}

func TestMain(m *testing.M) {
	flags := flag.NewFlagSet("klog", flag.PanicOnError)
	klog.InitFlags(flags)
	err := flags.Parse([]string{"-v=10", "-logtostderr=false", "-stderrthreshold=FATAL"})
	if err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// faults are answers that the simulation, which has Secrets under all faults of apisim, has not.
var faults = map[string][]apisim.Fault{
	"the rest of another frame": {
		answer(`planted-content","kind":"Secret"}`),
	},
	"no status":     {answer(`{"type":"ERROR","object":["planted-content"]}`)},
	"an odd list":   {answer(`{"kind":"SecretList","items":{"data":"planted-content"}}`)},
	"an odd event":  {answer(`{"type":["planted-content"],"object":{"data":"planted-content"}}`)},
	"another kind":  {answer(added("Pod", `"data":{"k":"planted-content"},`+named))},
	"odd data":      {answer(added("Secret", named+`,"data":"planted-content"`))},
	"no base64":     {answer(added("Secret", named+`,"data":{"k":"planted-content"}`))},
	"a short frame": {answer("\x00\x00\xff\xffplanted-content")},
	"a refusal that is a Secret": {
		answerAs(500, `{"kind":"Secret","data":{"k":"planted-content"},"code":"planted-content"}`),
	},
	"a refusal in markup": {answerAs(502, `<html>planted-content`)},
	"a refusal in text":   {answerAs(429, `planted-content`)},
	"a Secret as a Status": {
		answer(`{"type":"ERROR","object":` + object("Secret", `"data":{"k":"planted-content"}`) + `}`),
	},
	"a page to log in": {answer(`<html>planted-content`)},
	"an unknown event": {answer(`{"type":"planted-content","object":{}}`)},
	"a kind": {
		answer(`{"apiVersion":"planted-content","kind":"planted-content","items":[],"metadata":{}}`),
	},
	"a frame without magic": {
		answer("\x00\x00\x00\x1a\x0a\x05ADDED\x12\x11\x0a\x0fplanted-content"),
	},
}

const named = `"metadata":{"name":"x"}`

// object is an object in JSON, added the event of one.
func object(kind, fields string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":%q,%s}`, kind, fields)
}

func added(kind, fields string) string {
	return `{"type":"ADDED","object":` + object(kind, fields) + `}`
}

// malformed returns answers, lists and events, with a Secret in which one field has a value of
// another type. Decoders quote numbers and kinds too.
func malformed() map[string][]apisim.Fault {
	all := map[string][]apisim.Fault{}
	for name, fields := range map[string]string{
		"time":   `"metadata":{"name":"x","creationTimestamp":%s}`,
		"number": `"metadata":{"name":"x","generation":%s}`,
		"text":   `"metadata":{"name":%s}`,
		"labels": `"metadata":{"name":"x","labels":%s}`,
		"label":  `"metadata":{"name":"x","labels":{"planted-key":%s}}`,
		"annotations": `"metadata":{"name":"x","annotations":` +
			`{"kubectl.kubernetes.io/last-applied-configuration":%s}}`,
		"data":      named + `,"data":%s`,
		"entry":     named + `,"data":{"planted-key":%s}`,
		"type":      named + `,"type":%s`,
		"immutable": named + `,"immutable":%s`,
	} {
		for form, value := range map[string]string{
			"text": `"planted-content!"`, "a number": Number, "a list": `["planted-content"]`,
			"an object": `{"planted-key":{"k":"planted-content"}}`, "no JSON": `planted-content`,
		} {
			if name == "text" && form == "text" {
				continue // a name, which errors may quote
			}
			fields := fmt.Sprintf(fields, value)
			list := `{"kind":"SecretList","apiVersion":"v1","metadata":{},"items":[%s]}`
			list = fmt.Sprintf(list, object("Secret", fields))
			all[form+" as "+name+", listed"] = []apisim.Fault{answer(list)}
			all[form+" as "+name+", watched"] = []apisim.Fault{answer(added("Secret", fields))}
		}
	}
	return all
}

// answer answers with a faulty body, in the media type that the request prefers.
func answer(body string) apisim.Fault { return answerAs(http.StatusOK, body) }

// answerAs does so with a code.
func answerAs(code int, body string) apisim.Fault {
	return apisim.Answer(func(w http.ResponseWriter, r *http.Request) {
		first, _, _ := strings.Cut(r.Header.Get("Accept"), ",")
		if strings.IndexByte("{p<", body[0]) >= 0 {
			first = "application/json"
		}
		w.Header().Set("Content-Type", first)
		w.WriteHeader(code)
		io.WriteString(w, body) //nolint:errcheck // a client that is gone needs no answer
	})
}

// TestNothingSecretIsPrinted searches the output of informers after faults.
func TestNothingSecretIsPrinted(t *testing.T) {
	o := &Output{}
	klog.SetOutput(o)
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{
		func(_ context.Context, err error, message string, pairs ...any) {
			o.Print(err, message, pairs)
		},
	}
	metrics.RequestResult, metrics.RequestLatency = meter{o}, meter{o}
	all := malformed()
	maps.Copy(all, faults)
	for name, fault := range all {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { run(t, o, fault, faults[name] != nil) })
		})
	}
	klog.Flush()
	o.Check(t, 10_000)
}

// meter prints the labels of metrics.
type meter struct{ o *Output }

func (m meter) Increment(_ context.Context, code, method, host string) {
	m.o.Print(code, method, host)
}

func (m meter) Observe(_ context.Context, verb string, u url.URL, _ time.Duration) {
	m.o.Print(verb, u.String())
}

// run runs informers under a fault and prints their errors and their health: at the end of the fault,
// or with a recording every 15 seconds.
func run(t *testing.T, o *Output, fault []apisim.Fault, recorded bool) {
	server, err := apisim.New(apisim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close() //nolint:errcheck // the test is over
	all := []apisim.Rule{{Verbs: []string{"*"}, Resources: []string{"*"}}}
	reader := apisim.User{Name: "reader", Token: Token, Allow: all}
	if err := server.SetUsers(reader); err != nil {
		t.Fatal(err)
	}
	create := func(name string) {
		s := &corev1.Secret{Data: map[string][]byte{"k": []byte(Content)}}
		s.Namespace, s.Name = "default", name
		if _, err := server.Create(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	create("a")
	config := server.Config()
	config.BearerToken = Token

	ctx, cancel := context.WithCancel(t.Context())
	var recorder *flight.Recorder
	if recorded {
		recorder = newRecorder(t)
	}
	factory, own := native(t, o, config, recorder), custom(t, o, config, recorder)
	dropIn, informer := clientset(t, o, config)
	for _, verb := range []string{"", "list", "watch"} {
		i := server.Inject(apisim.Match{Verb: verb, Resource: "secrets"}, fault...)
		if verb == "" {
			if err := errors.Join(factory.Start(ctx), own.Start(ctx)); err != nil {
				t.Fatal(err)
			}
			dropIn.Start(ctx.Done())
		}
		server.Compact()
		server.CutConnections()
		for n := range 4 {
			time.Sleep(15 * time.Second)
			create(fmt.Sprint("b-", verb, n))
			synctest.Wait()
			if recorded || n == 3 {
				inspect(o, factory, informer, own.Health()...)
			}
		}
		server.CutConnections()
		i.Lift()
	}
	time.Sleep(time.Minute)
	inspect(o, factory, informer, own.Health()...)
	if recorded {
		printRecording(t, o, recorder)
	}
	cancel()
	dropIn.Shutdown()
	for _, h := range own.Health() {
		if h.Decoding.After.Shared != 0 {
			t.Errorf("%d Secrets of a custom type share values", h.Decoding.After.Shared)
		}
	}
	o.Print(factory.Shutdown(context.Background()), own.Shutdown(context.Background()))
}

// inspect prints health and errors, and the pages for operators.
func inspect(
	o *Output, factory *tidings.Factory, informer cache.SharedIndexInformer, more ...tidings.Health,
) {
	soon, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	o.Print(factory.WaitForSync(soon))
	health, _ := cache.HealthOf(informer)
	handler := debug.New(debug.Options{Bodies: true})
	defer handler.Close()
	if err := handler.Add(factory, informer.GetStore()); err != nil {
		panic(err)
	}
	for _, path := range []string{
		"/", "/informer?name=secrets.v1", "/informer?name=" + url.QueryEscape(health.Name), "/key?key=default/a",
	} {
		for _, form := range []string{"text/html", "application/json"} {
			request, answer := httptest.NewRequest(http.MethodGet, path, nil), httptest.NewRecorder()
			request.Host = "localhost"
			request.Header.Set("Accept", form)
			handler.ServeHTTP(answer, request)
			o.Print(answer.Body)
		}
	}
	o.PrintHealth(append(append(factory.Health(), health), more...)...)
}

// must fails the test if err is not nil.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newFactory returns a factory with the highest level of logs and low limits.
func newFactory(
	t *testing.T, o *Output, config *rest.Config, scheme *runtime.Scheme, recorder *flight.Recorder,
) *tidings.Factory {
	factory, err := tidings.NewFactory(config, tidings.FactoryOptions{
		Scheme: scheme, Logger: o.Logger(),
		Transport: tidings.Transport{
			MaxFrameBytes: 10_000, MaxListBytes: 10_000, Recorder: recorder,
		},
		DetectMutations: true, OnMutation: func(m tidings.Mutation) { o.Print(m, m.Error()) },
	})
	must(t, err)
	return factory
}

// native returns a factory with informers of each kind, whose handlers and functions fail.
func native(
	t *testing.T, o *Output, config *rest.Config, recorder *flight.Recorder,
) *tidings.Factory {
	factory := newFactory(t, o, config, nil, recorder)
	typed, err := tidings.For[*corev1.Secret](factory, tidings.Selection{})
	must(t, err)
	_, err = typed.AddHandler(tidings.Funcs[*corev1.Secret]{OnAdd: func(s *corev1.Secret, _ bool) {
		s.Data["k"] = []byte(Content + " twice")
		panic("a handler that panics")
	}}, tidings.HandlerOptions{IsolatePanics: true})
	must(t, err)
	failing := tidings.NewTransform(func(s *corev1.Secret) (*corev1.Secret, error) {
		panic("a transform that panics")
	})
	_, err = tidings.For[*corev1.Secret](factory, tidings.Selection{Transform: failing})
	must(t, err)
	_, err = tidings.Dynamic(factory, secretsResource, tidings.Selection{Namespace: "default"})
	must(t, err)
	_, err = tidings.Metadata(factory, secretsResource, tidings.Selection{})
	must(t, err)
	return factory
}

// login is a custom type for Secrets.
type login struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Data              map[string][]byte `json:"data"`
	Immutable         *bool             `json:"immutable"`
}

func (l *login) DeepCopyObject() runtime.Object {
	copied := *l
	return &copied
}

// custom returns a factory with an informer of Secrets as a custom type.
func custom(
	t *testing.T, o *Output, config *rest.Config, recorder *flight.Recorder,
) *tidings.Factory {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(corev1.SchemeGroupVersion.WithKind("Secret"), &login{})
	factory := newFactory(t, o, config, scheme, recorder)
	_, err := tidings.For[*login](factory, tidings.Selection{})
	must(t, err)
	return factory
}

// clientset returns an informer of the drop-in that reads with our decoder.
func clientset(
	t *testing.T, o *Output, config *rest.Config,
) (informers.SharedInformerFactory, cache.SharedIndexInformer) {
	client, err := kubernetes.NewForConfig(config)
	must(t, err)
	factory := informers.NewSharedInformerFactory(client, 0)
	informer := factory.Core().V1().Secrets().Informer()
	must(t, informer.SetWatchErrorHandlerWithContext(
		func(_ context.Context, _ *cache.Reflector, err error) { o.Print(err) }))
	return factory, informer
}
