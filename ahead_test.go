package tidings_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
)

// TestP16_ObjectsAhead has a server once say of an object, and of one that there is not, that
// they are of versions far ahead of its own. The next list is right again.
func TestP16_ObjectsAhead(t *testing.T) {
	const ahead = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"namespace":"default","uid":"u","resourceVersion":"1000000000"},"data":{"state":"wrong"}}`
	wrong := []string{fmt.Sprintf(ahead, "a"), fmt.Sprintf(ahead, "ghost")}
	before := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"default","uid":"u","resourceVersion":"1"}}`
	for verb, answer := range map[string]string{
		"list":  `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[` + strings.Join(wrong, ",") + `]}`,
		"watch": `{"type":"ADDED","object":` + strings.Join(append(wrong, before), "}\n"+`{"type":"ADDED","object":`) + "}\n",
	} {
		t.Run(verb, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { objectsAhead(t, verb, answer) })
		})
	}
}

func objectsAhead(t *testing.T, verb, answer string) {
	server := apisim.Start(t)
	server.RefuseStreamedLists(true)
	write := func(state string) {
		t.Helper()
		obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}, Data: map[string]string{"state": state}}
		if _, err := server.Create(t.Context(), obj); err != nil {
			if _, err := server.Update(t.Context(), obj); err != nil {
				t.Fatal(err)
			}
		}
	}
	write("1")
	factory, err := tidings.NewFactory(server.Config(), tidings.FactoryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	informer, err := tidings.For[*corev1.ConfigMap](factory, tidings.Selection{Namespace: "default"})
	if err != nil {
		t.Fatal(err)
	}
	first := map[string]int{"watch": 1}[verb] // the streamed list, which is refused
	server.Inject(apisim.Match{Verb: verb, Resource: "configmaps", Skip: first, Times: 1}, apisim.Answer(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, answer) //nolint:errcheck // a client that is gone needs no answer
	}))
	if err := factory.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Minute)
	server.SetAvailable(false)
	write("2")
	server.Compact()
	server.SetAvailable(true)
	time.Sleep(time.Minute)
	var cached []string
	for key, obj := range informer.Lister().All() {
		cached = append(cached, key+" "+obj.Data["state"])
	}
	if want := []string{"default/a 2"}; !slices.Equal(cached, want) {
		t.Errorf("cached are %v, want %v", cached, want)
	}
}
