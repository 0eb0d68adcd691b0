package gather

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/controller/election"
	"github.com/tidings-go/tidings/controller/guard"
	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/internal/see/inspect"
	"github.com/tidings-go/tidings/shard"
	"github.com/tidings-go/tidings/source"
)

// Sources are values whose health is read. The zero value has none.
type Sources struct {
	// NameOf returns the name of an informer from that of its health; nil leaves it as it is.
	NameOf func(string) string

	mu  sync.Mutex // guards the rest
	all []reader
}

// reader is a source with the function that reads its health.
type reader struct {
	of   any
	read func(s *Sources, f *Figures)
}

// Add adds sources: each is a *tidings.Factory, a factory of a drop-in package, an informer of
// either that has no factory, a *controller.Manager, a *controller.Controller without a manager, a
// *controller.Guard or *election.Elector without one, or a *shard.Group. A source that was added
// before is not added again. With an error, none is added.
func (s *Sources) Add(all ...any) error {
	var add []reader
	for _, of := range all {
		if err := check(of); err != nil {
			return err
		}
		read := readerOf(of)
		if read == nil {
			return fmt.Errorf("a %T has no health: pass a factory, an informer, "+
				"a controller.Manager, a controller.Controller, a controller.Guard, an "+
				"election.Elector or a shard.Group of this module; "+
				"of a wrapper of a drop-in informer, pass GetStore()", of)
		}
		add = append(add, reader{of, read})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range add {
		if !slices.ContainsFunc(s.all, func(has reader) bool { return has.of == a.of }) {
			s.all = append(s.all, a)
		}
	}
	return nil
}

// Remove removes a source. It does nothing for one that was not added.
func (s *Sources) Remove(of any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = slices.DeleteFunc(s.all, func(has reader) bool { return has.of == of })
}

// Len returns the number of sources.
func (s *Sources) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.all)
}

// Read reads the health of all sources.
func (s *Sources) Read() *Figures {
	s.mu.Lock()
	all := slices.Clone(s.all)
	s.mu.Unlock()
	f := &Figures{Skipped: map[string]string{}}
	f.named.informers, f.named.controllers = inspect.Names{}, inspect.Names{}
	for _, r := range all {
		r.read(s, f)
	}
	return f
}

// check returns an error for a value that cannot be a source.
func check(of any) error {
	if of == nil {
		return errors.New("the source is nil")
	}
	v := reflect.ValueOf(of)
	if v.Kind() == reflect.Pointer && v.IsNil() {
		return fmt.Errorf("the %T is nil", of)
	}
	if !v.Comparable() {
		return fmt.Errorf("the %T cannot be compared: pass a pointer to it", of)
	}
	return nil
}

// factory is a factory of informers.
type factory interface{ Health() []health.Informer }

// readerOf returns the function that reads the health of a source, nil if it has none.
func readerOf(of any) func(*Sources, *Figures) {
	switch of := of.(type) {
	case factory:
		return func(s *Sources, f *Figures) { s.factory(f, of) }
	case interface{ Health() health.Informer }:
		return func(s *Sources, f *Figures) { s.alone(f, of.Health(), of) }
	case manager:
		return func(_ *Sources, f *Figures) { f.manager(of) }
	case interface{ Health() controller.Health }:
		return func(_ *Sources, f *Figures) {
			f.controller(Controller{Health: of.Health(), Calls: callsOf(of), Waits: waitsOf(of)})
		}
	case interface{ Health() guard.Health }:
		return func(_ *Sources, f *Figures) { f.Guards = append(f.Guards, of.Health()) }
	case interface{ Health() election.Health }:
		return func(_ *Sources, f *Figures) { f.Elections = append(f.Elections, of.Health()) }
	case interface {
		Health() shard.Health
		Map() []shard.Entry
	}:
		return func(_ *Sources, f *Figures) { f.Groups = append(f.Groups, Group{of.Health(), of, of.Map}) }
	}
	return nil
}

// factory reads the informers of a factory, those of another module's without their views.
func (s *Sources) factory(f *Figures, of factory) {
	if of, ok := of.(interface{ SharingStats() source.TableStats }); ok {
		f.Sharing = append(f.Sharing, of.SharingStats())
	}
	views, ok := inspect.ViewsOf(of)
	for _, view := range views {
		h := view.Health()
		f.informer(s.name(h), Informer{Health: h, View: view})
	}
	if ok {
		return
	}
	for _, h := range of.Health() {
		f.informer(s.name(h), Informer{Health: h})
	}
}

// alone reads an informer without a factory.
func (s *Sources) alone(f *Figures, h health.Informer, of any) {
	i := Informer{Health: h, Source: of}
	if views, _ := inspect.ViewsOf(of); len(views) > 0 {
		i.View = views[0]
	}
	f.informer(s.name(h), i)
}

func (s *Sources) name(h health.Informer) string {
	if s.NameOf == nil {
		return h.Name
	}
	return s.NameOf(h.Name)
}

// callsOf returns the method of a controller that returns its last calls.
func callsOf(of any) func(key string) []controller.Call {
	if of, ok := of.(interface {
		Calls(key string) []controller.Call
	}); ok {
		return of.Calls
	}
	return func(string) []controller.Call { return nil }
}

// waitsOf returns the method of a controller that says why keys wait.
func waitsOf(of any) func(key string) []controller.Wait {
	if of, ok := of.(interface {
		Waits(key string) []controller.Wait
	}); ok {
		return of.Waits
	}
	return func(string) []controller.Wait { return nil }
}
