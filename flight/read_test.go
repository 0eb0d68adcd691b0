package flight_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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

// write writes what is recorded to a file.
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
