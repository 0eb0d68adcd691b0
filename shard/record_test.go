package shard

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/internal/seeds"
	"github.com/tidings-go/tidings/internal/slot"
	"github.com/tidings-go/tidings/shard/internal/protocol"
)

var mapSeeds = seeds.New("map", "TestS1_AMapIsReadAsItWasWritten", 50)

func TestS1_AMapIsReadAsItWasWritten(t *testing.T) {
	for seed := range mapSeeds.All() {
		random := rand.New(rand.NewPCG(seed, 0))
		ids := []protocol.ID{"", "rollout.a-x", "rollout.b-y", "rollout.c-z"}
		versions := []map[string]string{nil, {}, {"pods": "12"}, {"pods": "12", "deployments.apps": "7"}}
		c := contents{}
		if n := random.IntN(4); n > 0 {
			c.controllers = []string{"deployment", "", "job"}[:n]
		}
		c.entries = make([]protocol.Entry, Count+len(c.controllers))
		for i := range c.entries {
			c.entries[i] = protocol.Entry{
				Owner: ids[random.IntN(4)], Epoch: uint64(random.IntN(3)), Next: ids[random.IntN(4)],
				Ready: random.IntN(2) == 0, Versions: versions[random.IntN(4)],
			}
		}
		text, err := encode(c)
		if err != nil {
			t.Fatal(err)
		}
		l := new(coordinationv1.Lease)
		l.Annotations = map[string]string{entriesAnnotation: text}
		if got, err := decode(l); err != nil || !reflect.DeepEqual(got, c) {
			t.Fatalf("seed %d: %v, %v, want %v", seed, got, err, c)
		}
	}
}

func TestS1_AMapThatCannotBeReadIsAnError(t *testing.T) {
	for text, want := range map[string]string{
		"":                          "cannot be read",
		`{"entries":[]}`:            "has 0 entries",
		`{"format":2,"entries":[]}`: "the format 2 of a later version",
		`{"controllers":["a"],"entries":[[]` + empty(255):        "256 entries of slots and 1 controllers",
		`{"controllers":["a","","a"],"entries":[[]` + empty(258): "two entries of the controller a",
		`{"entries":[[1]` + empty(255):                           "wrong entry 0",
		`{"entries":[[0,0,0,0,9]` + empty(255):                   "wrong entry 0",
	} {
		l := new(coordinationv1.Lease)
		l.Annotations = map[string]string{entriesAnnotation: text}
		if _, err := decode(l); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: the error is %v, want %q", text, err, want)
		}
	}
}

func empty(n int) string { return strings.Repeat(",[]", n) + "]}" }

func TestS5_ARecordIsReadAsItWasWritten(t *testing.T) {
	want := record{
		generation: "7f9c", mapUID: "uid", leaving: true, serving: Set{1, 2, 3, 1 << 63, 5},
		loads: map[int]float64{0: 1.5, 255: round(123456)}, controllers: []string{"deployment", "job"},
	}
	l := new(coordinationv1.Lease)
	want.write(l)
	if got := readRecord(l); !reflect.DeepEqual(got, want) {
		t.Errorf("the record is %+v, want %+v", got, want)
	}
	l.Annotations = map[string]string{servingAnnotation: "zz", loadsAnnotation: "[", controllersAnnotation: "{"}
	if got := readRecord(l); !reflect.DeepEqual(got, record{}) {
		t.Errorf("a record that cannot be read is %+v", got)
	}
	if round(123456) != 120000 || round(-1) != 0 || round(0.0123) != 0.012 {
		t.Errorf("rounded: %v, %v, %v", round(123456), round(-1), round(0.0123))
	}
}

func TestOptionsThatCannotBeUsedAreErrors(t *testing.T) {
	for want, change := range map[string]func(*Options){
		"Namespace":                   func(o *Options) { o.Namespace = "" },
		`Name "My Group"`:             func(o *Options) { o.Name = "My Group" },
		`Identity "A_B"`:              func(o *Options) { o.Identity = "A_B" },
		"Identity has 240 bytes":      func(o *Options) { o.Identity = strings.Repeat("a", 240) },
		"Grace and HandOver":          func(o *Options) { o.HandOver = -1 },
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

// TestS1_AMapOfManyNamespacesFits encodes versions of twelve types in 500 namespaces.
func TestS1_AMapOfManyNamespacesFits(t *testing.T) {
	versions := map[string]string{}
	for r := range 12 {
		for n := range 500 {
			versions[fmt.Sprintf("resources%02d.example.com in namespace-%03d", r, n)] = "123456789"
		}
	}
	c := contents{entries: make([]protocol.Entry, slot.Count)}
	c.entries[7] = protocol.Entry{Owner: "a", Epoch: 1, Versions: versions}
	if text, err := encode(c); err != nil || len(text) > 256<<10 {
		t.Errorf("the map has %d bytes: %v", len(text), err)
	}
}
