package flight_test

import (
	"fmt"
	"math"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/flight"
	"github.com/tidings-go/tidings/internal/engine/tape"
	"github.com/tidings-go/tidings/source"
)

// hostileEvents are events that no recorder writes.
func hostileEvents() map[string]tape.Record {
	all := map[string]tape.Record{}
	for i, name := range tape.EventTypes {
		if i == 0 {
			continue
		}
		event := tape.Record{Kind: tape.Event, Type: uint8(i), Key: "default/x", Version: "7"}
		add := func(what string, change func(r *tape.Record)) {
			r := event
			change(&r)
			all[name+" "+what] = r
		}
		add("without a form", func(*tape.Record) {})
		add("left out", func(r *tape.Record) { r.Form, r.LeftOut = tape.JSON, true })
		add("without a key", func(r *tape.Record) { r.Key, r.LeftOut = "", true })
		add("of no identity", func(r *tape.Record) { r.Form = tape.Identity })
		add("of two identities", func(r *tape.Record) {
			r.Form = tape.Identity
			for _, key := range []string{"default/x", "default/y"} {
				r.Data = tape.AppendIdentity(r.Data, key, "7", "u", "")
			}
		})
		add("of another identity", func(r *tape.Record) {
			r.Form, r.Data = tape.Identity, tape.AppendIdentity(nil, "", "", "", "")
		})
		for _, form := range []tape.Form{tape.Protobuf, tape.JSON, tape.Encoded} {
			for _, data := range []string{
				"", "null", "{}", "[]", "1", `{"metadata":null}`, `{"type":"ADDED"}`, `{"type":"ADDED","object":null}`,
				`{"type":"ADDED","object":{}}`, `{"type":"BOOKMARK","object":{}}`, `{"type":"ERROR","object":{}}`,
				`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"z"}}`, "\x0a\x05ADDED\x12\x00", "\xff\xff\xff",
			} {
				add(fmt.Sprintf("of %s %q", form, data), func(r *tape.Record) { r.Form, r.Data = form, []byte(data) })
			}
		}
	}
	return all
}

// playInformer plays a track to an informer, until all was played or nothing happens any more.
func playInformer[T tidings.Object](t *testing.T, track *flight.Track, empty func() T) {
	t.Helper()
	played, err := source.Replay(track, empty, source.ReplayOptions{Speed: math.Inf(1)})
	if err != nil {
		return
	}
	i, err := tidings.NewInformer(played, tidings.InformerOptions[T]{Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	_, err = i.AddHandler(tidings.Funcs[T]{
		OnAdd:    func(now T, _ bool) { now.GetName() },
		OnUpdate: func(_, now T) { now.GetName() },
		OnDelete: func(last T) { last.GetName() },
	}, tidings.HandlerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	go i.Run(t.Context()) //nolint:errcheck // it ends with the test
	synctest.Wait()
}

// TestHostileEvents plays events that no recorder writes to informers, which must not panic.
func TestHostileEvents(t *testing.T) {
	for name, event := range hostileEvents() {
		for _, streamed := range []bool{false, true} {
			track := &flight.Track{Name: "x", Collection: tape.Collection{
				Version: "v1", Resource: "configmaps", Kind: "ConfigMap",
			}, BaseVersion: "5", Records: []tape.Record{
				{Kind: tape.Watch, More: &tape.More{Request: &tape.Request{SendInitialEvents: streamed}}},
				{Kind: tape.Begun}, event,
			}}
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					playInformer(t, track, func() *corev1.ConfigMap { return new(corev1.ConfigMap) })
					playInformer(t, track, func() *unstructured.Unstructured { return new(unstructured.Unstructured) })
				})
			})
		}
	}
}

// TestHostileLists plays bases and pages that no recorder writes to informers, which must not
// panic.
func TestHostileLists(t *testing.T) {
	identity := func(key, version, uid, err string) []byte {
		return tape.AppendIdentity(nil, key, version, uid, err)
	}
	page := func(data []byte) []tape.Record {
		request := &tape.More{Request: &tape.Request{}}
		return []tape.Record{
			{Kind: tape.List, More: request},
			{Kind: tape.Page, Version: "9", Form: tape.Identity, Data: data, More: &tape.More{}},
			{Kind: tape.Watch, More: request}, {Kind: tape.Begun},
		}
	}
	listed := func(data []byte) []tape.Record {
		return []tape.Record{
			{Kind: tape.Watch, More: &tape.More{Request: &tape.Request{SendInitialEvents: true}}},
			{Kind: tape.Begun}, {Kind: tape.Listed, Form: tape.Identity, Data: data},
			{Kind: tape.Event, Type: uint8(source.InitialEventsEnd), Version: "9"},
		}
	}
	tracks := map[string]*flight.Track{}
	for name, items := range map[string][]byte{
		"nothing": nil, "no key": identity("", "1", "u", ""), "slashes": identity("//a/b/", "1", "u", ""),
		"no version": identity("a/b", "", "", ""), "an error": identity("", "", "", "odd"), "odd text": identity("\xff/\x00", "x", "\xff", ""),
		"twice": append(identity("a/b", "1", "u", ""), identity("a/b", "2", "v", "")...), "cut off": identity("a/b", "1", "u", "")[:5],
	} {
		tracks["page of "+name] = &flight.Track{Records: page(items)}
		tracks["streamed list of "+name] = &flight.Track{Records: listed(items)}
	}
	for _, data := range []string{"null", "{}", "[]", "1", `{"metadata":null}`, `{"metadata":{"name":"other"}}`, `{"kind":"Pod"}`} {
		for _, key := range []string{"", "a/b", "//"} {
			tracks["base "+key+" "+data] = &flight.Track{
				Base:        []tape.Object{{Key: key, Version: "1", Data: []byte(data)}},
				BaseVersion: "1", Records: page(identity(key, "1", "", "")),
			}
		}
	}
	for name, track := range tracks {
		track.Collection = tape.Collection{Version: "v1", Resource: "configmaps", Kind: "ConfigMap"}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				playInformer(t, track, func() *corev1.ConfigMap { return new(corev1.ConfigMap) })
				playInformer(t, track, func() *unstructured.Unstructured { return new(unstructured.Unstructured) })
			})
		})
	}
}
