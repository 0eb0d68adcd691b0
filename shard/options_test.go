package shard

import (
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings/controller"
)

func TestOptionsThatCannotBeUsedAreErrors(t *testing.T) {
	for want, change := range map[string]func(*Options){
		"Namespace":                   func(o *Options) { o.Namespace = "" },
		`Name "My Group"`:             func(o *Options) { o.Name = "My Group" },
		`Identity "A_B"`:              func(o *Options) { o.Identity = "A_B" },
		"Identity has 240 bytes":      func(o *Options) { o.Identity = strings.Repeat("a", 240) },
		"Options.Grace":               func(o *Options) { o.Grace = -1 },
		"Duration is 500ms: give a":   func(o *Options) { o.Duration = 500 * time.Millisecond },
		"Renew is 7s: give at most t": func(o *Options) { o.Renew = 7 * time.Second },
	} {
		o := Options{Namespace: "ops", Name: "rollout", Identity: "a"}
		change(&o)
		_, err := Join(t.Context(), &rest.Config{}, new(process), o)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %q", err, want)
		}
	}
	if _, err := Join(t.Context(), nil, new(process), Options{}); err == nil {
		t.Error("a nil rest.Config is no error")
	}
	slots := controller.NewSlots(controller.ByUID)
	_, err := Join(t.Context(), &rest.Config{}, slots, Options{Namespace: "ops", Name: "rollout"})
	if err == nil || !strings.Contains(err.Error(), "shard: no controller and no manager has the controller.Slots") {
		t.Errorf("the error of slots without controllers is %v", err)
	}
}

// TestS4_TheGenerationIsFound in the variable of the manifest, or else it is the revision of the
// build.
func TestS4_TheGenerationIsFound(t *testing.T) {
	o := Options{Namespace: "ops", Name: "rollout", Identity: "a"}
	t.Setenv("POD_TEMPLATE_HASH", "7f9c")
	if got, err := o.complete(); err != nil || got.Generation != "7f9c" || got.Grace != 25*time.Second {
		t.Errorf("the options are %+v, %v", got, err)
	}
	o.Generation = "v2"
	if got, err := o.complete(); err != nil || got.Generation != "v2" {
		t.Errorf("the options are %+v, %v", got, err)
	}
}
