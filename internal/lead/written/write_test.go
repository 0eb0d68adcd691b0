package written

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tidings-go/tidings/controller/guard"
)

// fakeCache is the cache of the namespace shop, with up to one object, shop/x.
type fakeCache struct {
	reached      string
	version, uid string // "" without the object
	selects      bool
	over         error
	foreign      bool      // the object is in a slot of another process
	doubts       *[]string // the calls of SuspectWatch; nil does not record them
	listed       *bool     // is set by CatchUp
	undecodable  string    // the version of its present state, if that cannot be decoded
	bare         bool      // a transform has left out version and UID of the object
}

func (c fakeCache) Selects() bool                      { return c.selects }
func (c fakeCache) Selectors() (labels, fields string) { return "", "" }
func (c fakeCache) Over() error                        { return c.over }

func (c fakeCache) Reached(namespace string) (version string, ok bool) {
	return c.reached, namespace == "shop"
}

func (c fakeCache) Cached(key string) (version, uid string, ok bool) {
	return c.version, c.uid, key == "shop/x" && (c.version != "" || c.bare)
}

func (c fakeCache) Received(key string) (version, uid string, ok bool) {
	if c.undecodable != "" {
		return c.undecodable, "1", key == "shop/x"
	}
	return c.Cached(key)
}

func (c fakeCache) Holds(string, string) bool { return !c.foreign }

func (c fakeCache) SuspectWatch(key, version, uid string) {
	if c.doubts != nil {
		*c.doubts = append(*c.doubts, strings.Join([]string{key, version, uid}, " "))
	}
}

func (c fakeCache) CatchUp(string, string) {
	if c.listed != nil {
		*c.listed = true
	}
}

var errStopped = errors.New("stopped")

// TestC03_Held lists for each kind of write the caches that show it.
func TestC03_Held(t *testing.T) {
	x := func(w guard.Write) guard.Write {
		w.Namespace, w.Name = "shop", "x"
		return w
	}
	updated := x(guard.Write{UID: "1", Version: "10"})
	deleted := x(guard.Write{UID: "1", Gone: true})
	for name, test := range map[string]struct {
		write guard.Write
		cache fakeCache
		want  bool
	}{
		"not listed yet":                          {updated, fakeCache{}, false},
		"the state before":                        {updated, fakeCache{reached: "9", version: "9", uid: "1"}, false},
		"the state":                               {updated, fakeCache{reached: "9", version: "10", uid: "1"}, true},
		"a later state":                           {updated, fakeCache{reached: "12", version: "12", uid: "1"}, true},
		"passed, and deleted by others":           {updated, fakeCache{reached: "11"}, true},
		"passed, and not selected":                {updated, fakeCache{reached: "10", version: "9", uid: "1", selects: true}, true},
		"passed, in another history":              {updated, fakeCache{reached: "10", version: "9", uid: "1"}, false},
		"more digits":                             {updated, fakeCache{reached: "9999"}, true},
		"not listed, and not there":               {updated, fakeCache{reached: "9"}, false},
		"versions without order":                  {updated, fakeCache{reached: "a", version: "b"}, true},
		"it cannot be decoded":                    {updated, fakeCache{reached: "9", version: "8", uid: "1", undecodable: "10"}, true},
		"it cannot be decoded, before":            {updated, fakeCache{reached: "9", undecodable: "9"}, false},
		"a conflict, and it cannot":               {x(guard.Write{Version: "9", Conflict: true, Sent: epoch}), fakeCache{reached: "9", version: "8", undecodable: "10"}, true},
		"a delete, and it could not":              {deleted, fakeCache{reached: "9", undecodable: "9"}, false},
		"stopped":                                 {updated, fakeCache{reached: "9", over: errStopped}, true},
		"in a slot of others":                     {updated, fakeCache{reached: "9", foreign: true}, true},
		"in a slot that is not known":             {x(guard.Write{Version: "10"}), fakeCache{reached: "9", foreign: true}, false},
		"another namespace":                       {guard.Write{Namespace: "blog", Name: "x", Version: "10"}, fakeCache{reached: "9"}, true},
		"a delete, not shown":                     {deleted, fakeCache{reached: "9", version: "9", uid: "1"}, false},
		"a delete, shown":                         {deleted, fakeCache{reached: "9"}, true},
		"a delete, another UID":                   {deleted, fakeCache{reached: "9", version: "9", uid: "2"}, true},
		"a delete, a UID that is not known":       {deleted, fakeCache{reached: "9", version: "9"}, false},
		"without version and UID, before":         {updated, fakeCache{reached: "9", bare: true}, false},
		"without version and UID, passed":         {updated, fakeCache{reached: "10", bare: true}, true},
		"a delete, without version and UID":       {deleted, fakeCache{reached: "99", bare: true}, false},
		"a conflict, without version and UID":     {x(guard.Write{UID: "u", Conflict: true, Sent: epoch}), fakeCache{reached: "99", bare: true}, false},
		"a conflict, without version":             {x(guard.Write{Version: "9", Conflict: true, Sent: epoch}), fakeCache{reached: "99", bare: true}, false},
		"it exists, without version":              {x(guard.Write{Conflict: true, Sent: epoch}), fakeCache{reached: "9", bare: true}, true},
		"a conflict over a UID that is not known": {x(guard.Write{UID: "u", Conflict: true, Sent: epoch}), fakeCache{reached: "9", version: "9"}, false},
		"a last finalizer, not shown":             {x(guard.Write{UID: "1", Version: "9", Gone: true}), fakeCache{reached: "9", version: "9", uid: "1"}, false},
		"a last finalizer, before the change":     {x(guard.Write{UID: "1", Version: "9", Gone: true}), fakeCache{reached: "8"}, false},
		"a last finalizer, shown":                 {x(guard.Write{UID: "1", Version: "9", Gone: true}), fakeCache{reached: "10"}, true},
		"gone at a version, cached before":        {x(guard.Write{Version: "10", Gone: true}), fakeCache{reached: "9", version: "9", uid: "1"}, false},
		"gone at a version, passed":               {x(guard.Write{Version: "10", Gone: true}), fakeCache{reached: "11", version: "11", uid: "2"}, true},
		"unknown":                                 {x(guard.Write{Version: "10", Unknown: true}), fakeCache{reached: "99"}, false},
		"a conflict, the same state":              {x(guard.Write{Version: "9", Conflict: true, Sent: epoch}), fakeCache{reached: "9", version: "9"}, false},
		"a conflict over a UID, the same object":  {x(guard.Write{UID: "u", Conflict: true, Sent: epoch}), fakeCache{reached: "9", version: "9", uid: "u"}, false},
		"a conflict over a UID, another object":   {x(guard.Write{UID: "before", Conflict: true, Sent: epoch}), fakeCache{reached: "9", version: "9", uid: "u"}, true},
		"a conflict over a UID, no object":        {x(guard.Write{UID: "u", Conflict: true, Sent: epoch}), fakeCache{reached: "9"}, true},
		"a conflict over both, a later state":     {x(guard.Write{UID: "u", Version: "9", Conflict: true, Sent: epoch}), fakeCache{reached: "9", version: "10", uid: "u"}, true},
		"a conflict, a later state":               {x(guard.Write{Version: "9", Conflict: true, Sent: epoch}), fakeCache{reached: "9", version: "10"}, true},
		"a conflict, a second ago":                {x(guard.Write{Version: "9", Conflict: true, Sent: epoch.Add(-time.Second)}), fakeCache{reached: "9", version: "9"}, true},
		"it exists, and does not show":            {x(guard.Write{Conflict: true, Sent: epoch}), fakeCache{reached: "9"}, false},
		"it exists":                               {x(guard.Write{Conflict: true, Sent: epoch}), fakeCache{reached: "9", version: "9"}, true},
		"a collection, not passed":                {guard.Write{Namespace: "shop", Version: "10"}, fakeCache{reached: "9"}, false},
		"a collection":                            {guard.Write{Namespace: "shop", Version: "10"}, fakeCache{reached: "10"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := Of(&test.write, epoch)
			if got := w.Held(test.cache, 0); got != test.want {
				t.Errorf("held is %v, want %v", got, test.want)
			}
		})
	}
}

var epoch = time.Unix(1_000_000, 0)

// TestC03_Due lists when the server is asked.
func TestC03_Due(t *testing.T) {
	for name, test := range map[string]struct {
		write guard.Write
		cache fakeCache
		want  time.Duration
	}{
		"a collection":          {guard.Write{Version: "10"}, fakeCache{}, 6 * time.Second},
		"usually":               {guard.Write{Version: "10"}, fakeCache{}, 5*time.Second + askAfter},
		"a hidden object":       {guard.Write{Version: "10"}, fakeCache{selects: true}, 6 * time.Second},
		"a cached object":       {guard.Write{Version: "10"}, fakeCache{selects: true, version: "9"}, 5*time.Second + askAfter},
		"a deletion":            {guard.Write{Gone: true}, fakeCache{selects: true}, 5*time.Second + askAfter},
		"a hidden deletion":     {guard.Write{Gone: true, Version: "10"}, fakeCache{selects: true}, 6 * time.Second},
		"one left out":          {guard.Write{Version: "10"}, fakeCache{selects: true, undecodable: "9"}, 5*time.Second + askAfter},
		"an unknown outcome":    {guard.Write{Unknown: true, NotBefore: epoch.Add(35 * time.Second)}, fakeCache{}, 35 * time.Second},
		"the end of a conflict": {guard.Write{Conflict: true, Sent: epoch}, fakeCache{}, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			test.write.Namespace = "shop"
			if name != "a collection" {
				test.write.Name = "x"
			}
			w := Of(&test.write, epoch)
			if got := w.Due(test.cache, 5*time.Second); got != test.want {
				t.Errorf("due at %v, want %v", got, test.want)
			}
		})
	}
}

// TestReplaces: a later write of an object replaces an earlier one of the same kind.
func TestReplaces(t *testing.T) {
	first := Write{Object: "shop/x", UID: "1", Version: "9"}
	for name, test := range map[string]struct {
		change func(w *Write)
		want   bool
	}{
		"a later version":    {func(w *Write) { w.Version = "10" }, true},
		"an earlier version": {func(w *Write) { w.Version = "8" }, false},
		"another object":     {func(w *Write) { w.Object, w.Version = "shop/y", "10" }, false},
		"another UID":        {func(w *Write) { w.UID, w.Version = "2", "10" }, false},
		"a deletion":         {func(w *Write) { w.Gone = true }, false},
		"an unknown outcome": {func(w *Write) { w.Unknown = true }, false},
	} {
		next := first
		if test.change(&next); next.Replaces(&first) != test.want {
			t.Errorf("%s: replaces is %v", name, !test.want)
		}
	}
}

// TestRecreates: a write of another object proves that the deleted one of its name has ended.
func TestRecreates(t *testing.T) {
	ended, made := Write{Object: "shop/x", UID: "1", Gone: true}, Write{Object: "shop/x", UID: "2", Version: "9"}
	for name, test := range map[string]struct {
		change func(ended, made *Write)
		want   bool
	}{
		"another object":          {func(*Write, *Write) {}, true},
		"the same UID":            {func(_, made *Write) { made.UID = "1" }, false},
		"a UID that is not known": {func(ended, _ *Write) { ended.UID = "" }, false},
		"another name":            {func(_, made *Write) { made.Object = "shop/y" }, false},
		"an object that is there": {func(ended, _ *Write) { ended.Gone = false }, false},
		"an unknown outcome":      {func(_, made *Write) { made.Unknown = true }, false},
		"a conflict":              {func(_, made *Write) { made.Conflict = true }, false},
		"a second end":            {func(_, made *Write) { made.Gone = true }, false},
	} {
		ended, made := ended, made
		if test.change(&ended, &made); made.Recreates(&ended) != test.want {
			t.Errorf("%s: recreates is %v", name, !test.want)
		}
	}
}
