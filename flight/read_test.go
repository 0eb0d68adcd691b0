package flight_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/klauspost/compress/zstd"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tidings-go/tidings/flight"
)

var update = flag.Bool("update", false, "write the golden recording anew")

// golden is a recording of version 1 of the format, which every later version of this package has
// to read.
const golden = "testdata/version-1.zip"

// TestGolden reads a recording of version 1: with -update, it is recorded anew.
func TestGolden(t *testing.T) {
	if *update {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, flight.Options{MaxAge: time.Minute}, calm, false)
			w.update("a", 70)
			w.server.CutConnections()
			time.Sleep(5 * time.Second)
			w.delete("b")
			synctest.Wait()
			w.write(golden, "a golden file")
		})
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, flight.Options{}, calm, false)
			before := w.server.Snapshot()
			w.update("a", 5)
			rewind(w, before)
			time.Sleep(10 * time.Second)
			w.update("b", 5)
			w.write("testdata/rewind.zip", "rewind of informer configmaps.v1")
		})
	}
	recording, err := flight.Open(golden)
	if err != nil {
		t.Fatal(err)
	}
	track, err := recording.Track("configmaps.v1")
	if err != nil {
		t.Fatal(err)
	}
	last := track.Records[len(track.Records)-1]
	if recording.Reason != "a golden file" || track.Kind != "ConfigMap" || len(track.Base) != 3 ||
		len(track.Records) < 60 || last.Type != 3 || last.Key != "default/b" || len(last.Data) == 0 {
		t.Errorf("the recording has the reason %q, the kind %q, %d objects, %d records, the last %+v",
			recording.Reason, track.Kind, len(track.Base), len(track.Records), last)
	}
}

// write writes the records to a file.
func (w *world) write(name, reason string) {
	w.Helper()
	var file bytes.Buffer
	w.must(w.recorder.Dump(&file, reason))
	w.must(os.WriteFile(name, file.Bytes(), 0o644))
}

// rewritten returns the golden file with one part changed.
func rewritten(t *testing.T, part string, change func([]byte) []byte) []byte {
	t.Helper()
	from, err := zip.OpenReader(golden)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	var file bytes.Buffer
	to := zip.NewWriter(&file)
	for _, f := range from.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if f.Name == part {
			if content = change(content); content == nil {
				continue
			}
		}
		w, err := to.Create(f.Name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// TestDamage opens damaged recordings: each error names the file and the part.
func TestDamage(t *testing.T) {
	whole, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	edit := func(from, to string) func([]byte) []byte {
		return func(b []byte) []byte { return bytes.Replace(b, []byte(from), []byte(to), 1) }
	}
	gone := func([]byte) []byte { return nil }
	half := func(b []byte) []byte { return b[:len(b)/2] }
	garbled := func(b []byte) []byte {
		b[len(b)/2] ^= 0xff
		return b
	}
	const index, records, data = "index.json", "track-1/records.jsonl.zst", "track-1/data.zst"
	for says, file := range map[string][]byte{
		"not a flight recording":                      nil,
		"one that was cut off":                        whole[:len(whole)-100],
		"part index.json: not a flight":               rewritten(t, index, gone),
		"part index.json: not a flight recording: un": rewritten(t, index, half),
		"version 2 of the format":                     rewritten(t, index, edit(`"version": 1`, `"version": 2`)),
		`its format is "another"`: rewritten(t, index,
			edit("tidings flight recording", "another")),
		"part " + records + ": not a flight recording: it is damaged: open":             rewritten(t, records, gone),
		"part " + records + ": not a flight recording: it is damaged: line":             rewritten(t, records, half),
		"part " + data + ": not a flight recording: it is damaged: the bytes of record": rewritten(t, data, half),
		"part track-1/base.jsonl.zst: not a flight recording: it is damaged": rewritten(t,
			"track-1/base.jsonl.zst", garbled),
		"more in it than the index says": rewritten(t, index, edit(`"base": 3`, `"base": 2`)),
	} {
		name := filepath.Join(t.TempDir(), "damaged.zip")
		if err := os.WriteFile(name, file, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := flight.Open(name)
		if err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), name) {
			t.Errorf("%v\nwant the file and %q", err, says)
		}
		if !strings.HasPrefix(says, "version") && !errors.Is(err, flight.ErrFormat) {
			t.Errorf("%v is not ErrFormat", err)
		}
	}
}

// FuzzRead reads any bytes as a recording, and as the records and the index of one.
func FuzzRead(f *testing.F) {
	whole, err := os.ReadFile(golden)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Fuzz(func(t *testing.T, file []byte) {
		recording, err := flight.Read(bytes.NewReader(file), int64(len(file)))
		if (recording == nil) == (err == nil) {
			t.Fatalf("%v, %v", recording, err)
		}
		if err != nil {
			return
		}
		for _, track := range recording.Tracks {
			if _, err := json.Marshal(track.Collection); err != nil {
				t.Error(err)
			}
			playAll(t, track)
		}
	})
}

// FuzzRecords reads any records, base and data as those of a recording, and plays them to
// informers.
func FuzzRecords(f *testing.F) {
	const watch = `{"at":0,"kind":"watch","request":{"sendInitialEvents":true}}` + "\n" + `{"at":1,"kind":"begun"}` + "\n"
	f.Add(`{"key":"a/b","version":"1","uid":"u","object":{"metadata":{"name":"b"}}}`+"\n",
		watch+`{"at":2,"kind":"listed","form":"identity","items":[["a/b","1","u",""],["a/c","2","v","odd"]]}`+"\n"+
			`{"at":3,"kind":"event","type":"INITIAL_EVENTS_END","version":"3"}`+"\n"+
			`{"at":4,"kind":"event","type":"MODIFIED","form":"json","key":"a/b","version":"4","bytes":76}`+"\n"+
			`{"at":5,"kind":"failed","failure":{"error":"x","phase":"Streaming","causes":["end of the stream"]}}`+"\n",
		[]byte(`{"type":"MODIFIED","object":{"metadata":{"name":"b","resourceVersion":"4"}}}`))
	f.Add("", `{"at":0,"kind":"list","request":{"limit":500}}`+"\n"+
		`{"at":1,"kind":"page","version":"9","form":"identity","items":[["a/b","1","u",""]],"continue":"c","remaining":1}`+"\n"+
		`{"at":2,"kind":"list","request":{"limit":500,"continue":"c"}}`+"\n"+
		`{"at":3,"kind":"failed","failure":{"error":"gone","status":{"code":410,"reason":"Expired"}}}`+"\n", []byte{})
	f.Add("", watch+`{"at":2,"kind":"event","type":"ADDED","key":"a/b","version":"4","leftOut":true}`+"\n"+
		`{"at":9,"kind":"closed"}`+"\n", []byte{})
	f.Fuzz(func(t *testing.T, base, records string, data []byte) {
		file := fileOf(t, base, records, data)
		recording, err := flight.Read(bytes.NewReader(file), int64(len(file)))
		if err != nil {
			return
		}
		for _, track := range recording.Tracks {
			playAll(t, track)
			synctest.Test(t, func(t *testing.T) {
				playInformer(t, track, func() *corev1.ConfigMap { return new(corev1.ConfigMap) })
				playInformer(t, track, func() *unstructured.Unstructured { return new(unstructured.Unstructured) })
			})
		}
	})
}

// fileOf returns a recording with one track.
func fileOf(t *testing.T, base, records string, data []byte) []byte {
	t.Helper()
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	archive := zip.NewWriter(&file)
	for name, content := range map[string][]byte{
		"index.json": fmt.Appendf(nil, `{"format":"tidings flight recording","version":1,"tracks":[{"name":"x",`+
			`"collection":{"version":"v1","resource":"configmaps","kind":"ConfigMap"},"base":%d,"records":%d}]}`,
			strings.Count(base, "\n"), strings.Count(records, "\n")),
		"track-1/base.jsonl.zst":    encoder.EncodeAll([]byte(base), nil),
		"track-1/records.jsonl.zst": encoder.EncodeAll([]byte(records), nil),
		"track-1/data.zst":          encoder.EncodeAll(data, nil),
	} {
		part, err := archive.Create(name)
		if err == nil {
			_, err = part.Write(content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}
