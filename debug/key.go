package debug

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/internal/see/gather"
	"github.com/tidings-go/tidings/internal/see/inspect"
	"github.com/tidings-go/tidings/source"
)

// KeyFigures is the JSON form of the page of a key.
type KeyFigures struct {
	Key string `json:"key"`
	// Problems are those of the informers that cache it: what is shown may be old.
	Problems []Problem `json:"problems,omitempty"`
	// Field is a text that the shown fields contain, "" for all.
	Field string `json:"field,omitempty"`
	// Bodies reports whether objects are shown.
	Bodies bool `json:"-"`
	// Cached are the objects of the key, one for each informer that caches one.
	Cached []Cached `json:"cached"`
	// Absent are the informers that hold no object of the key, and Unknown those whose keys the
	// pages cannot show.
	Absent  []string `json:"absent,omitempty"`
	Unknown []string `json:"unknown,omitempty"`
	// Candidates are keys to choose from, if Key is a name without a namespace, or is not cached.
	Candidates []string `json:"candidates,omitempty"`
	// Handlers are the handlers that are being called for the key.
	Handlers []KeyHandler `json:"handlers,omitempty"`
	// Controllers describe the present work of controllers for the key.
	Controllers []KeyController `json:"controllers,omitempty"`
	// Waits say why it waits, and until when.
	Waits []KeyWait `json:"waits,omitempty"`
	// Calls are the last calls of controllers for it, up to 20 of each, the newest first.
	Calls []KeyCall `json:"calls,omitempty"`
}

// Cached is the object of a key in the cache of an informer.
type Cached struct {
	Informer string `json:"informer"`
	Type     string `json:"type"`
	UID      string `json:"uid"`
	Version  string `json:"version"`
	// Generation counts the changes of the specification; 0 for types that have none.
	Generation int64 `json:"generation,omitzero"`
	// Created is missing if the object is a view that does not declare it.
	Created time.Time `json:"created,omitzero"`
	// Declares are the paths of the fields that it has, if it is a view; nil for a whole object.
	Declares []string `json:"declares,omitempty"`
	// Deleted is the time at which the deletion began of an object with finalizers, and Finalizers
	// are those that it waits for.
	Deleted    time.Time `json:"deleted,omitzero"`
	Finalizers []string  `json:"finalizers,omitempty"`
	Owners     []Owner   `json:"owners,omitempty"`
	// Children are up to 100 cached objects that name it as their owner.
	Children []Child `json:"children,omitempty"`
	// Commands are texts to copy.
	Commands []Command `json:"commands,omitempty"`
	// Managers are its writers, the last one first. There are none in caches that leave out
	// managed fields.
	Managers []Manager `json:"managers,omitempty"`
	// Fields are up to 100 of their fields that contain KeyFigures.Field, those of the last writer
	// first. Found is the number of all.
	Fields []FieldWriter `json:"-"`
	Found  int           `json:"-"`
	// Secret reports whether it may be a Secret. Then its fields and body are not shown.
	Secret bool `json:"secret,omitempty"`
	// Body is the object as YAML, if Options.Bodies is set.
	Body string `json:"body,omitempty"`
}

// Owner is an object that another one names as its owner.
type Owner struct {
	Kind       string `json:"kind"`
	Key        string `json:"key"`
	Controller bool   `json:"controller,omitempty"`
}

// KeyHandler is a handler that is being called for a key.
type KeyHandler struct {
	Informer string    `json:"informer"`
	Name     string    `json:"name"`
	Since    time.Time `json:"since"`
}

// KeyCall is a call of a controller.
type KeyCall struct {
	Controller string `json:"controller"`
	controller.Call
}

// keyCalls bounds the calls of a controller for a key.
const keyCalls = 20

// KeyController describes the present work of a controller for a key.
type KeyController struct {
	Name string `json:"name"`
	// What is one sentence.
	What  string    `json:"what"`
	Since time.Time `json:"since,omitzero"`
}

func (h *Handler) keyPage(r *http.Request, all *gather.Figures) (any, error) {
	f := KeyFigures{
		Key: r.FormValue("key"), Field: r.FormValue("field"), Bodies: h.o.Bodies, Cached: []Cached{},
	}
	if f.Key == "" {
		return nil, fmt.Errorf("name a key: ?key=namespace/name, or the name of an object without a namespace")
	}
	only := r.FormValue("informer")
	if only != "" {
		if _, err := informerOf(all, only); err != nil {
			return nil, err
		}
	}
	if keys := named(all, f.Key); len(keys) == 1 && !isCached(all, f.Key) {
		f.Key = keys[0]
	}
	for _, i := range all.Informers {
		for _, handler := range i.Health.Handlers {
			if handler.Running == f.Key {
				f.Handlers = append(f.Handlers, KeyHandler{i.Name, handler.Name, handler.RunningSince})
			}
		}
		if only != "" && i.Name != only {
			continue
		}
		if i.View == nil {
			f.Unknown = append(f.Unknown, i.Name)
			continue
		}
		obj, ok := i.View.Object(f.Key)
		if !ok {
			f.Absent = append(f.Absent, i.Name)
			continue
		}
		c := h.cached(i.Name, i.View, obj, f.Field)
		c.Children = childrenOf(all, types.UID(c.UID))
		if text := kubectlGet(i.View.Resource(), f.Key); text != "" {
			c.Commands = []Command{{"The object on the server", text}}
		}
		f.Cached = append(f.Cached, c)
		f.Problems = append(f.Problems, h.cacheProblems(i, now())...)
	}
	if len(f.Cached) == 0 {
		f.Candidates = containing(all, f.Key)
	}
	f.Waits = keyWaits(all.Controllers, f.Key)
	f.Controllers = keyControllers(all.Controllers, f.Key)
	for _, c := range all.Controllers {
		calls := c.Calls(f.Key)
		for _, call := range calls[:min(len(calls), keyCalls)] {
			f.Calls = append(f.Calls, KeyCall{c.Health.Name, call})
		}
	}
	return f, nil
}

// isCached reports whether an informer caches an object of a key.
func isCached(all *gather.Figures, key string) bool {
	return slices.ContainsFunc(all.Informers, func(i gather.Informer) bool {
		if i.View == nil {
			return false
		}
		_, ok := i.View.Object(key)
		return ok
	})
}

func (h *Handler) cached(name string, view inspect.View, obj any, field string) Cached {
	c := Cached{Informer: name, Type: fmt.Sprintf("%T", obj)}
	of, ok := obj.(source.Object)
	if !ok {
		return c
	}
	c.Declares = view.Health().Declares
	c.UID, c.Version = string(of.GetUID()), of.GetResourceVersion()
	c.Generation = of.GetGeneration()
	if dated, ok := of.(interface{ GetCreationTimestamp() metav1.Time }); ok {
		c.Created = dated.GetCreationTimestamp().Time
	}
	if at := of.GetDeletionTimestamp(); at != nil {
		c.Deleted = at.Time
	}
	if c.Secret = isSecret(view, obj); c.Secret {
		return c
	}
	c.Finalizers = of.GetFinalizers()
	for _, ref := range of.GetOwnerReferences() {
		key := ref.Name
		if of.GetNamespace() != "" {
			key = of.GetNamespace() + "/" + ref.Name // the owner may have no namespace
		}
		c.Owners = append(c.Owners, Owner{ref.Kind, key, ref.Controller != nil && *ref.Controller})
	}
	if managed, ok := of.(managedObject); ok {
		c.Managers = managers(managed, field)
	}
	c.Fields, c.Found = fieldWriters(c.Managers)
	if h.o.Bodies {
		c.Body = body(obj)
	}
	return c
}

func keyControllers(all []gather.Controller, key string) (found []KeyController) {
	for _, of := range all {
		c := of.Health
		add := func(applies bool, since time.Time, what string) {
			if applies {
				found = append(found, KeyController{c.Name, what, since})
			}
		}
		for _, f := range c.Fights {
			add(f.Key == key || f.Object == key, f.Since, "fights: "+fightText(f))
		}
		for _, l := range c.Looping {
			add(l.Key == key || l.Object == key, l.Since, "is in a loop: "+loopText(l))
		}
		add(c.LastErrorOf == key, c.LastErrorAt, "has failed: "+c.LastError)
	}
	return found
}
