package contract_test

import (
	"bytes"
	"runtime/pprof"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
)

// TestProfilesNameInformersAndHandlers looks for the labels of goroutines.
func TestProfilesNameInformersAndHandlers(t *testing.T) {
	factory, err := tidings.NewFactory(apisim.Options{}.Start(t).Config(), tidings.FactoryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pods, err := tidings.For[*corev1.Pod](factory, tidings.Selection{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = pods.AddHandler(tidings.HandlerFunc[*corev1.Pod](func(tidings.Event[*corev1.Pod]) {}),
		tidings.HandlerOptions{Name: "painter"})
	if err != nil {
		t.Fatal(err)
	}
	if err := factory.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := factory.WaitForSync(t.Context()); err != nil {
		t.Fatal(err)
	}
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
