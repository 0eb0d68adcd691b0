package controller_test

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/controller"
)

func TestS6_SlotsThatCannotBe(t *testing.T) {
	inWorld(t, func(w *world) {
		create(w, configMap("a", "x"))
		maps := informer[*corev1.ConfigMap](w)
		for want, o := range map[string]options{
			"NewSlots(ByNamespace)": {Slots: &controller.Slots{}, Guard: w.guard},
			"Options.Guard":         {Slots: controller.NewSlots(controller.ByNamespace)},
		} {
			o.Name = "test"
			if _, err := controller.New(maps, o, nothing); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("the error is %v, want %q in it", err, want)
			}
		}
		s := controller.NewSlots(controller.ByNamespace)
		nodes := informer[*corev1.Node](w)
		_, err := controller.New(nodes, controller.Options[*corev1.Node]{
			Name: "nodes", Guard: w.guard, Slots: s, Logger: discard,
		}, func(context.Context, controller.Request[*corev1.Node]) (controller.Result, error) {
			return controller.Result{}, nil
		})
		if err == nil || !strings.Contains(err.Error(), "NewSlots(ByUID)") {
			t.Errorf("the error is %v", err)
		}
		x := newController(w, options{Slots: controller.NewSlots(controller.ByNamespace)}, nothing)
		if err := x.RunTerm(w.ctx, newTerm()); err == nil || !strings.Contains(err.Error(), "group") {
			t.Errorf("the error of RunTerm is %v", err)
		}
		refusesInformersOfOtherSlots(w)
		m, err := controller.NewManager(w.factory, controller.ManagerOptions{
			Guard: w.guard, Logger: discard, Election: &controller.Election{Name: "test", Namespace: "a"},
		})
		fatal(t, err)
		fatal(t, m.AddController(x))
		if err := m.Run(w.ctx); err == nil || !strings.Contains(err.Error(), "without an election") {
			t.Errorf("the error of Manager.Run is %v", err)
		}
	})
}

func TestS1_SlotsAreThoseOfOneGroup(t *testing.T) {
	inWorld(t, func(w *world) {
		s := controller.NewSlots(controller.ByNamespace)
		if err := s.Claim(); err == nil || !strings.Contains(err.Error(), "make them before Join") {
			t.Errorf("the error without a controller is %v", err)
		}
		newController(w, options{Slots: s}, nothing)
		fatal(t, s.Claim())
		if err := s.Claim(); err == nil || !strings.Contains(err.Error(), "belong to an earlier group") {
			t.Errorf("the error of a second group is %v", err)
		}
		s = controller.NewSlots(controller.ByNamespace)
		_, err := controller.NewManager(w.factory, controller.ManagerOptions{Slots: s, Guard: w.guard})
		fatal(t, err)
		fatal(t, s.Claim())
	})
}

func nothing(context.Context, request) (controller.Result, error) { return controller.Result{}, nil }

// refusesInformersOfOtherSlots makes controllers of informers that lack objects that calls need.
func refusesInformersOfOtherSlots(w *world) {
	w.Helper()
	of := func(slots *tidings.Slots) *tidings.Informer[*corev1.ConfigMap] {
		i, err := tidings.For[*corev1.ConfigMap](w.factory, tidings.Selection{Slots: slots})
		fatal(w.T, err)
		return i
	}
	reads := func(i *tidings.Informer[*corev1.ConfigMap]) []controller.Secondary {
		return []controller.Secondary{controller.Reads(i)}
	}
	byUID, byNamespace := controller.NewSlots(controller.ByUID), controller.NewSlots(controller.ByNamespace)
	for name, test := range map[string]struct {
		primary *tidings.Slots
		options options
		want    string // "" for no error
	}{
		"slots without Options.Slots": {byUID.Held(), options{}, "set Options.Slots"},
		"other slots":                 {byUID.Held(), options{Slots: byNamespace}, "Options.Slots.Held()"},
		"a secondary by UID":          {byUID.Held(), options{Slots: byUID, Secondaries: reads(of(byUID.Held()))}, "divide by namespace"},
		"a secondary of other slots":  {nil, options{Slots: byUID, Secondaries: reads(of(byNamespace.Held()))}, "it lacks objects"},
		"a secondary by namespace":    {byNamespace.Held(), options{Slots: byNamespace, Secondaries: reads(of(byNamespace.Held()))}, ""},
		"a secondary held whole":      {byUID.Held(), options{Slots: byUID, Secondaries: reads(of(nil))}, ""},
	} {
		test.options.Name, test.options.Guard, test.options.Logger = "test", w.guard, discard
		_, err := controller.New(of(test.primary), test.options, nothing)
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			w.Errorf("%s: the error is %v, want %q in it", name, err, test.want)
		}
	}
}
