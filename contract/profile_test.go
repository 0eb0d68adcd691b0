package contract_test

import (
	"bytes"
	"runtime/pprof"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
)

// TestProfilesNameInformersAndHandlers looks for the labels of goroutines.
func TestProfilesNameInformersAndHandlers(t *testing.T) {
	server := apisim.Options{}.Start(t)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "first"}}
	if _, err := server.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	factory, err := tidings.NewFactory(server.Config(), tidings.FactoryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pods, err := tidings.For[*corev1.Pod](factory, tidings.Selection{})
	if err != nil {
		t.Fatal(err)
	}
	painter, err := pods.AddHandler(tidings.HandlerFunc[*corev1.Pod](func(tidings.Event[*corev1.Pod]) {}),
		tidings.HandlerOptions{Name: "painter"})
	if err != nil {
		t.Fatal(err)
	}
	if err := factory.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-painter.Synced() // its goroutine has called the handler
	var profile bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&profile, 1); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"does":"reflector", "informer":"pods.v1"`, `"does":"processor", "informer":"pods.v1"`,
		`"handler":"painter", "informer":"pods.v1"`,
	} {
		if !strings.Contains(profile.String(), want) {
			t.Errorf("no goroutine has the labels %s:\n%s", want, profile.String())
		}
	}
}
