package tidings_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tidings-go/tidings"
)

// frame encodes a watch event in the media type of an answer.
func frame(protobuf bool, eventType string, object runtime.Object) []byte {
	status, _ := object.(*metav1.Status)
	var raw []byte
	if protobuf && status != nil {
		message, err := status.Marshal()
		if err != nil {
			panic(err)
		}
		unknown := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: "Status"}, Raw: message}
		if message, err = unknown.Marshal(); err != nil {
			panic(err)
		}
		raw = append([]byte("k8s\x00"), message...)
	} else {
		var err error
		if raw, err = json.Marshal(object); err != nil {
			panic(err)
		}
	}
	event := metav1.WatchEvent{Type: eventType, Object: runtime.RawExtension{Raw: raw}}
	if !protobuf {
		data, err := json.Marshal(event)
		if err != nil {
			panic(err)
		}
		return append(data, '\n')
	}
	message, err := event.Marshal()
	if err != nil {
		panic(err)
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(message))), message...)
}

func status(code int32, reason metav1.StatusReason) *metav1.Status {
	return &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: code, Reason: reason, Message: "as the test wants it"}
}

// faultyWriter lets a number of writes pass and spoils the next one.
type faultyWriter struct {
	http.ResponseWriter
	passes int
	spoil  func(w http.ResponseWriter, protobuf bool, data []byte)
	spent  *atomic.Bool
}

func (w *faultyWriter) Write(data []byte) (int, error) {
	if w.passes--; w.passes < 0 && w.spent.CompareAndSwap(false, true) {
		protobuf := strings.Contains(w.Header().Get("Content-Type"), "protobuf")
		w.spoil(w.ResponseWriter, protobuf, data)
		http.NewResponseController(w.ResponseWriter).Flush() //nolint:errcheck // the connection is given up anyway
		panic(http.ErrAbortHandler)
	}
	return w.ResponseWriter.Write(data)
}

func (w *faultyWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// send writes bytes into the middle of an answer.
func send(w http.ResponseWriter, data []byte) {
	w.Write(data) //nolint:errcheck // the connection is given up anyway
}

// streamFaults are what can happen in the place of a write of the server. Each ends
// the watch; what the server wanted to write is lost on the way.
var streamFaults = map[string]struct {
	spoil func(w http.ResponseWriter, protobuf bool, data []byte)
	says  string
}{
	"connection lost before a frame": {func(http.ResponseWriter, bool, []byte) {}, ""},
	"frame cut":                      {func(w http.ResponseWriter, _ bool, data []byte) { send(w, data[:len(data)/2]) }, ""},
	"garbage":                        {func(w http.ResponseWriter, _ bool, _ []byte) { send(w, []byte("\xff\xff\xff\xff<html>")) }, ""},
	"frame over the limit": {func(w http.ResponseWriter, protobuf bool, _ []byte) {
		if protobuf {
			send(w, binary.BigEndian.AppendUint32(nil, 64<<20))
			return
		}
		send(w, []byte(`{"type":"ADDED","object":{"x":"`))
		for range 33 {
			send(w, []byte(strings.Repeat("x", 1<<20)))
		}
	}, "larger than the limit"},
	"unknown event type": {func(w http.ResponseWriter, protobuf bool, _ []byte) {
		send(w, frame(protobuf, "SPLENDID", status(200, "")))
	}, "SPLENDID"},
	"ERROR event, internal error": {func(w http.ResponseWriter, protobuf bool, _ []byte) {
		send(w, frame(protobuf, "ERROR", status(500, metav1.StatusReasonInternalError)))
	}, "as the test wants it"},
	"ERROR event, expired": {func(w http.ResponseWriter, protobuf bool, _ []byte) {
		send(w, frame(protobuf, "ERROR", status(410, metav1.StatusReasonExpired)))
	}, "as the test wants it"},
	"ERROR event, too many requests": {func(w http.ResponseWriter, protobuf bool, _ []byte) {
		send(w, frame(protobuf, "ERROR", status(429, metav1.StatusReasonTooManyRequests)))
	}, "as the test wants it"},
}

// spoilWatches makes the fault happen once, after so many writes of a watch.
func (w *world) spoilWatches(passes int, spoil func(http.ResponseWriter, bool, []byte)) {
	var spent atomic.Bool
	w.wrap(func(rw http.ResponseWriter, r *http.Request) http.ResponseWriter {
		if r.URL.Query().Get("watch") != "true" {
			return rw
		}
		return &faultyWriter{ResponseWriter: rw, passes: passes, spoil: spoil, spent: &spent}
	})
}

// TestP01_NoFaultOfAStreamLosesAChange lets each fault hit the list, the first event
// after it, and a later one, and compares at the end what server, cache and handlers
// hold. The rows of faultRows say what guards against each kind; the limit of frames
// that do not say how long they are is guarded here, by frames.next.
func TestP01_NoFaultOfAStreamLosesAChange(t *testing.T) {
	for name, fault := range streamFaults {
		t.Run(name, func(t *testing.T) {
			for _, passes := range []int{0, 1, 4, 6} {
				t.Run(fmt.Sprint("after ", passes, " writes"), func(t *testing.T) {
					property(t, func(w *world) {
						for i := range 3 {
							w.create(fmt.Sprint("object-", i), "1")
						}
						folded := map[string]string{}
						w.probe.handle(func(e event) {
							if _, known := folded[e.Key]; known == (e.Type == tidings.Added) {
								w.Errorf("%v, known before: %v", e, known)
							}
							if e.Type == tidings.Deleted {
								delete(folded, e.Key)
							} else {
								folded[e.Key] = e.New
							}
						}, tidings.HandlerOptions{})
						w.spoilWatches(passes, fault.spoil)
						w.start()
						for round := range 3 {
							w.update("object-0", fmt.Sprint("round-", round))
							w.remove("object-1")
							w.create("object-1", fmt.Sprint("round-", round))
							w.create(fmt.Sprint("brief-", round), "1")
							synctest.Wait()
							w.remove(fmt.Sprint("brief-", round))
							time.Sleep(time.Second)
						}
						w.settle()
						w.agree()
						if cache := w.probe.state(); !maps.Equal(folded, cache) {
							w.Errorf("the handler adds up to %v, the cache holds %v", folded, cache)
						}
						h := w.probe.informer().Health()
						if h.State != tidings.Watching || h.LastError == nil || !strings.Contains(h.LastError.Error(), fault.says) {
							w.Errorf("health is %s after %v, want an error that says %q", h.State, h.LastError, fault.says)
						}
					})
				})
			}
		})
	}
}

// TestP18_SameVersionThatCannotBeReadTwiceIsListed keeps spoiling the watches from one
// version: resuming does not help, so the collection is listed.
func TestP18_SameVersionThatCannotBeReadTwiceIsListed(t *testing.T) {
	property(t, func(w *world) {
		w.create("a", "1")
		w.start()
		at := w.versions["a"]
		w.wrap(func(rw http.ResponseWriter, r *http.Request) http.ResponseWriter {
			if r.URL.Query().Get("resourceVersion") != at {
				return rw
			}
			return &faultyWriter{ResponseWriter: rw, spent: new(atomic.Bool), spoil: func(rw http.ResponseWriter, protobuf bool, _ []byte) {
				send(rw, frame(protobuf, "SPLENDID", status(200, "")))
			}}
		})
		w.server.CutConnections()
		w.update("a", "2")
		w.settle()
		w.agree()
		if h := w.probe.informer().Health(); h.Lists != 2 || h.State != tidings.Watching {
			w.Errorf("health is %+v, want a second list", h)
		}
	})
}
