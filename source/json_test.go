package source

import (
	"encoding/json"
	"reflect"
	"testing"
)

// cuttable are lists, each with whether its items are found by their brackets.
var cuttable = map[string]bool{
	`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[{"a":1},{"b":"]}\"[{"}]}`: true,
	` { "items" : [ {"a":1} , [2] , "x" ] , "kind" : "PodList" } `:                                             true,
	`{"items":[]}`:                  true,
	`{"items":[],"kind":"PodList"}`: true,
	`{"items":[{"a":"\\"},{}],"metadata":{"continue":"x","remainingItemCount":3,"selfLink":""}}`: true,
	`{"metadata":{"items":[{}]},"items":[{}]}`:                                                   true,
	`{"items":[{}]`:                  false,
	`{"items":[{}],}`:                false,
	`{"items":[{}]}x`:                true, // the rest says what is wrong
	`{"items":[{}],"items":[]}`:      false,
	`{"items":[{}],"it\u0065ms":[]}`: false,
	`{"Items":[{}]}`:                 false,
	`{"items":null}`:                 false,
	`{"items":{}}`:                   false,
	`{"items":[null]}`:               false,
	`{"items":[1,2]}`:                false,
	`{"items":[{} {}]}`:              false,
	`{"items":[{},]}`:                false,
	`{"items":[{"a":"}]}`:            false,
	`{"items":[{"a":1}`:              false,
	`{"items":["a","b\"]}`:           false,
	`{"kind":1,"items":[{}]}`:        false,
	`{}`:                             false,
	`[]`:                             false,
	``:                               false,
	`{"items"`:                       false,
	`{"items":`:                      false,
	`{"items":[`:                     false,
	`{"items":[{}`:                   false,
}

// sameList compares a list that was cut with that of a general decoder. Cutting
// does not look into the items.
func sameList(t *testing.T, body []byte) {
	t.Helper()
	var want jsonList
	wantErr := unmarshalJSON(body, &want)
	got, err := openJSONList(body, anySize)
	for i := 0; err == nil && i < len(got.Items); i++ {
		var item any
		err = unmarshalJSON(got.Items[i], &item)
	}
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("%q: error %v, want %v", body, err, wantErr)
	}
	if err == nil && !reflect.DeepEqual(got, want) {
		t.Fatalf("%q: %+v, want %+v", body, got, want)
	}
}

func anySize(int) error { return nil }

func TestItemsAreCut(t *testing.T) {
	for body, cut := range cuttable {
		sameList(t, []byte(body))
		if _, _, err := cutItems([]byte(body), anySize); (err == nil) != cut {
			t.Errorf("%q was cut: %v", body, err)
		}
	}
	tooLarge := func(int) error { return ErrFrameTooLarge }
	if _, _, err := cutItems([]byte(`{"items":[{}]}`), tooLarge); err != ErrFrameTooLarge {
		t.Errorf("the error for an item is %v, want %v", err, ErrFrameTooLarge)
	}
}

// FuzzItems compares with a general decoder.
func FuzzItems(f *testing.F) {
	for body := range cuttable {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) { sameList(t, body) })
}

// eventFrames are watch frames, each with whether it is cut.
var eventFrames = map[string]bool{
	`{"type":"ADDED","object":{"a":"}"}}`:           true,
	` { "object" : {} , "type" : "BOOKMARK" } `:     true,
	`{"type":"ERROR","object":{"code":410}}` + "\n": true,
	`{"type":"ADDED","object":{}}x`:                 false,
	`{"type":"ADDED","object":{},"more":1}`:         false,
	`{"type":"ADDED","type":"ADDED","object":{}}`:   false,
	`{"type":"ADDED","object":{},"object":{}}`:      false,
	`{"type":"AD\u0044ED","object":{}}`:             false,
	`{"type":"LATER","object":{}}`:                  false,
	`{"type":"ADDED","object":null}`:                false,
	`{"type":"ADDED","object":[]}`:                  false,
	`{"type":"ADDED"}`:                              false,
	`{"object":{}}`:                                 false,
	`{"type":{},"object":{}}`:                       false,
	`{"Type":"ADDED","object":{}}`:                  false,
	`{"type":"ADDED","object":{`:                    false,
	`{"type":"ADDED","object":{}`:                   false,
	``:                                              false,
}

func sameEvent(t *testing.T, frame []byte) (cut bool) {
	t.Helper()
	name, object, cut := cutEvent(frame)
	if !cut {
		return false
	}
	var want jsonWatchEvent
	wantErr := unmarshalJSON(frame, &want)
	if valid := json.Valid(object); valid != (wantErr == nil) {
		t.Fatalf("%q: the object is valid: %v; the frame: %v", frame, valid, wantErr)
	}
	if wantErr == nil && (string(name) != want.Type || string(object) != string(want.Object)) {
		t.Fatalf("%q: %q %q, want %+v", frame, name, object, want)
	}
	return true
}

func TestEventsAreCut(t *testing.T) {
	for frame, cut := range eventFrames {
		if sameEvent(t, []byte(frame)) != cut {
			t.Errorf("%q was cut: %v", frame, !cut)
		}
	}
}

// FuzzCutEvent compares with a general decoder.
func FuzzCutEvent(f *testing.F) {
	for frame := range eventFrames {
		f.Add([]byte(frame))
	}
	f.Fuzz(func(t *testing.T, frame []byte) { sameEvent(t, frame) })
}
