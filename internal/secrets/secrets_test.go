package secrets

import (
	"context"
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
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
)

const (
	plantedToken = "planted-bearer-token"
	plantedData  = "planted-content"
	// plantedNumber is the content where a number stands.
	plantedNumber = "31337313373133731337"
)

// planted are the forms in which what was planted could be found.
var planted = []string{"planted-", plantedNumber[:10], base64.StdEncoding.EncodeToString([]byte(plantedData))[:16]}

var secretsResource = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}

// output takes all that is printed.
type output struct {
	mu   sync.Mutex // guards text
	text strings.Builder
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

// print takes a value in the forms in which programs print it.
func (o *output) print(values ...any) {
	for _, v := range values {
		fmt.Fprintf(o, "%v\n%+v\n%#v\n", v, v, v)
	}
}

// search fails the test for each line with what was planted.
func (o *output) search(t *testing.T) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	found := 0
	for line := range strings.Lines(o.text.String()) {
		if i := slices.IndexFunc(planted, func(p string) bool { return strings.Contains(line, p) }); i >= 0 && found < 10 {
			found++
			at := strings.Index(line, planted[i])
			t.Errorf("printed: …%s", line[max(0, at-200):min(len(line), at+100)])
		}
	}
	if o.text.Len() < 10_000 {
		t.Errorf("only %d bytes were printed: the test sees nothing", o.text.Len())
	}
}

func TestMain(m *testing.M) {
	flags := flag.NewFlagSet("klog", flag.PanicOnError)
	klog.InitFlags(flags)
	for name, value := range map[string]string{"v": "10", "logtostderr": "false", "alsologtostderr": "false", "stderrthreshold": "FATAL"} {
		if err := flags.Set(name, value); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// faults are what happens to the answers, one after the other.
var faults = map[string][]apisim.Fault{
	"cut within an answer":       {apisim.CutWithin(1)},
	"cut within a later frame":   {apisim.CutWithin(3)},
	"half a frame":               {apisim.Truncate(1)},
	"half of each frame":         {apisim.Truncate(apisim.EachFrame)},
	"noise":                      {apisim.Garble(apisim.EachFrame)},
	"too large":                  {apisim.Inflate(apisim.EachFrame, 100_000)},
	"401":                        {apisim.Refuse(401, 0)},
	"403":                        {apisim.Refuse(403, 0)},
	"500":                        {apisim.Refuse(500, 0)},
	"an ERROR event":             {apisim.Fail(1, 500)},
	"no streamed lists":          {apisim.RefuseStreams()},
	"an event twice":             {apisim.Duplicate(apisim.EachFrame)},
	"the rest of another frame":  {answer(`planted-content","kind":"Secret"}`)},
	"no status":                  {answer(`{"type":"ERROR","object":["planted-content"]}`)},
	"an odd list":                {answer(`{"kind":"SecretList","items":{"data":"planted-content"}}`)},
	"an odd event":               {answer(`{"type":["planted-content"],"object":{"data":"planted-content"}}`)},
	"another kind":               {answer(`{"type":"ADDED","object":{"apiVersion":"v1","kind":"Pod","data":{"k":"planted-content"},"metadata":{"name":"x"}}}`)},
	"odd data":                   {answer(`{"type":"ADDED","object":{"apiVersion":"v1","kind":"Secret","metadata":{"name":"x"},"data":"planted-content"}}`)},
	"no base64":                  {answer(`{"type":"ADDED","object":{"apiVersion":"v1","kind":"Secret","metadata":{"name":"x"},"data":{"k":"planted-content"}}}`)},
	"a short frame":              {answer("\x00\x00\xff\xffplanted-content")},
	"a refusal that is a Secret": {answerAs(500, `{"kind":"Secret","data":{"k":"planted-content"},"code":"planted-content"}`)},
	"a refusal in markup":        {answerAs(502, `<html>planted-content`)},
	"a refusal in text":          {answerAs(429, `planted-content`)},
	"a Secret as a Status":       {answer(`{"type":"ERROR","object":{"apiVersion":"v1","kind":"Secret","data":{"k":"planted-content"}}}`)},
	"a page to log in":           {answer(`<html>planted-content`)},
	"an unknown event":           {answer(`{"type":"planted-content","object":{}}`)},
	"a kind":                     {answer(`{"apiVersion":"planted-content","kind":"planted-content","items":[],"metadata":{}}`)},
	"a frame without magic":      {answer("\x00\x00\x00\x1a\x0a\x05ADDED\x12\x11\x0a\x0fplanted-content")},
}

// malformed returns answers, in lists and in events, with a Secret in which one field has a
// value that it cannot have. Numbers and kinds are quoted by decoders too.
func malformed() map[string][]apisim.Fault {
	all := map[string][]apisim.Fault{}
	for name, field := range map[string]string{
		"time": `"metadata":{"name":"x","creationTimestamp":%s}`, "number": `"metadata":{"name":"x","generation":%s}`,
		"text": `"metadata":{"name":%s}`, "labels": `"metadata":{"name":"x","labels":%s}`, "label": `"metadata":{"name":"x","labels":{"planted-key":%s}}`,
		"annotations": `"metadata":{"name":"x","annotations":{"kubectl.kubernetes.io/last-applied-configuration":%s}}`, "data": `"metadata":{"name":"x"},"data":%s`,
		"entry": `"metadata":{"name":"x"},"data":{"planted-key":%s}`, "type": `"metadata":{"name":"x"},"type":%s`, "immutable": `"metadata":{"name":"x"},"immutable":%s`,
	} {
		for form, value := range map[string]string{
			"text": `"planted-content!"`, "a number": plantedNumber, "a list": `["planted-content"]`, "an object": `{"planted-key":{"k":"planted-content"}}`, "no JSON": `planted-content`,
		} {
			if name == "text" && form == "text" {
				continue // a name, which errors are to say
			}
			object := `{"apiVersion":"v1","kind":"Secret",` + fmt.Sprintf(field, value) + `}`
			all[form+" as "+name+", listed"] = []apisim.Fault{answer(`{"kind":"SecretList","apiVersion":"v1","metadata":{},"items":[` + object + `]}`)}
			all[form+" as "+name+", watched"] = []apisim.Fault{answer(`{"type":"ADDED","object":` + object + `}`)}
		}
	}
	return all
}

// answer answers with a body that no server should send, in the media type that was
// asked for first.
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

// TestNothingSecretIsPrinted guards what errors say of an answer.
func TestNothingSecretIsPrinted(t *testing.T) {
	o := &output{}
	klog.SetOutput(o)
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{func(_ context.Context, err error, message string, pairs ...any) {
		o.print(err, message, pairs)
	}}
	metrics.RequestResult, metrics.RequestLatency = meter{o}, meter{o}
	all := malformed()
	maps.Copy(all, faults)
	for name, fault := range all {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { meet(t, o, fault) })
		})
	}
	klog.Flush()
	o.search(t)
}

// meter prints what metrics are given.
type meter struct{ o *output }

func (m meter) Increment(_ context.Context, code, method, host string) { m.o.print(code, method, host) }
func (m meter) Observe(_ context.Context, verb string, u url.URL, _ time.Duration) {
	m.o.print(verb, u.String())
}

// meet runs informers under a fault and prints whatever they say.
func meet(t *testing.T, o *output, fault []apisim.Fault) {
	server, err := apisim.New(apisim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close() //nolint:errcheck // the test is over
	allowed := apisim.User{Name: "reader", Token: plantedToken, Allow: []apisim.Rule{{Verbs: []string{"*"}, Resources: []string{"*"}}}}
	if err := server.SetUsers(allowed); err != nil {
		t.Fatal(err)
	}
	create := func(name string) {
		made := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Data: map[string][]byte{"k": []byte(plantedData)}}
		if _, err := server.Create(t.Context(), made); err != nil {
			t.Fatal(err)
		}
	}
	create("a")
	config := server.Config()
	config.BearerToken = plantedToken

	ctx, cancel := context.WithCancel(t.Context())
	factory, own := native(t, o, config), ownStruct(t, o, config)
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
			inspect(o, factory, informer, own.Health()...)
		}
		server.CutConnections()
		i.Lift()
	}
	time.Sleep(time.Minute)
	inspect(o, factory, informer, own.Health()...)
	cancel()
	dropIn.Shutdown()
	for _, h := range own.Health() {
		if h.Decoding.After.Shared != 0 {
			t.Errorf("%d Secrets in a struct of a program's own share", h.Decoding.After.Shared)
		}
	}
	o.print(factory.Shutdown(context.Background()), own.Shutdown(context.Background()))
}

// inspect prints what can be asked.
func inspect(o *output, factory *tidings.Factory, informer cache.SharedIndexInformer, more ...tidings.Health) {
	soon, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	o.print(factory.WaitForSync(soon))
	health, _ := cache.HealthOf(informer)
	for _, h := range append(append(factory.Health(), health), more...) {
		o.print(h, h.LastError, h.LastDropped, h.LastTransformError, h.LastIndexError)
	}
}

// native returns a factory with informers of each kind, whose handlers and functions fail.
func native(t *testing.T, o *output, config *rest.Config) *tidings.Factory {
	factory, err := tidings.NewFactory(config, tidings.FactoryOptions{
		Logger:        slog.New(slog.NewTextHandler(o, &slog.HandlerOptions{Level: slog.Level(-100)})),
		MaxFrameBytes: 10_000, MaxListBytes: 10_000,
		DetectMutations: true, OnMutation: func(m tidings.Mutation) { o.print(m, m.Error()) },
	})
	if err != nil {
		t.Fatal(err)
	}
	typed, err := tidings.For[*corev1.Secret](factory, tidings.Selection{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = typed.AddHandler(tidings.Funcs[*corev1.Secret]{OnAdd: func(s *corev1.Secret, _ bool) {
		s.Data["k"] = []byte(plantedData + " twice")
		panic("a handler that panics")
	}}, tidings.HandlerOptions{IsolatePanics: true})
	if err != nil {
		t.Fatal(err)
	}
	failing := tidings.NewTransform(func(s *corev1.Secret) (*corev1.Secret, error) { panic("a transform that panics") })
	if _, err := tidings.For[*corev1.Secret](factory, tidings.Selection{Transform: failing}); err != nil {
		t.Fatal(err)
	}
	if _, err := tidings.Dynamic(factory, secretsResource, tidings.Selection{Namespace: "default"}); err != nil {
		t.Fatal(err)
	}
	if _, err := tidings.Metadata(factory, secretsResource, tidings.Selection{}); err != nil {
		t.Fatal(err)
	}
	return factory
}

// login is a struct of a program's own that it decodes Secrets into.
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

// ownStruct returns a factory with an informer of Secrets as a struct of a program's own.
func ownStruct(t *testing.T, o *output, config *rest.Config) *tidings.Factory {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(corev1.SchemeGroupVersion.WithKind("Secret"), &login{})
	factory, err := tidings.NewFactory(config, tidings.FactoryOptions{
		Scheme: scheme, Logger: slog.New(slog.NewTextHandler(o, &slog.HandlerOptions{Level: slog.Level(-100)})), MaxFrameBytes: 10_000, MaxListBytes: 10_000,
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tidings.For[*login](factory, tidings.Selection{}); err != nil {
		t.Fatal(err)
	}
	return factory
}

// clientset returns an informer of the drop-in that reads with our decoder.
func clientset(t *testing.T, o *output, config *rest.Config) (informers.SharedInformerFactory, cache.SharedIndexInformer) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	informer := factory.Core().V1().Secrets().Informer()
	err = informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) { o.print(err) })
	if err != nil {
		t.Fatal(err)
	}
	return factory, informer
}
