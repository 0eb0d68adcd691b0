package flight_test

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/flight"
)

// TestOptions has options that cannot be used, with the texts that their errors contain.
func TestOptions(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for says, o := range map[string]flight.Options{
		"Options.Dir cannot be written":                        {Dir: file},
		"Options.MaxBytes is 1000: give 1048576 to 1073741824": {MaxBytes: 1000},
		"Options.MaxBytes is -1":                               {MaxBytes: -1},
		"Options.MaxBytes is 9223372036854775807":              {MaxBytes: math.MaxInt64},
		"Options.MaxAge is 1ms: give a second or more":         {MaxAge: time.Millisecond},
		`Options.Cut: "metadata.uid" cannot be left out`:       {Cut: []string{"metadata.uid"}},
	} {
		if _, err := flight.New(o); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v, want %q", o, err, says)
		}
	}
}

// TestNilRecorder gives an informer a recorder that is nil.
func TestNilRecorder(t *testing.T) {
	var recorder *flight.Recorder
	synctest.Test(t, func(t *testing.T) {
		server := apisim.Start(t)
		var o tidings.FactoryOptions
		o.Logger, o.Transport.Recorder = quiet, recorder
		factory, err := tidings.NewFactory(server.Config(), o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tidings.For[*corev1.Pod](factory, tidings.Selection{}); err != nil {
			t.Fatal(err)
		}
		if err := factory.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := factory.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

// TestAutomaticRecordings has the events that lead to a recording in Options.Dir.
func TestAutomaticRecordings(t *testing.T) {
	for reason, test := range map[string]func(w *world, factory *tidings.Factory){
		"panic": func(w *world, factory *tidings.Factory) {
			handle(w, factory, tidings.HandlerOptions{IsolatePanics: true}, func(c *corev1.ConfigMap) {
				if c.Name == "trigger" {
					panic("a handler")
				}
			})
			w.create("trigger")
		},
		"stuck": func(w *world, factory *tidings.Factory) {
			o := tidings.HandlerOptions{Limit: 1}
			handle(w, factory, o, func(*corev1.ConfigMap) { <-w.Context().Done() })
			for i := range 10 {
				w.create(fmt.Sprint("gone-", i))
				synctest.Wait()
				w.delete(fmt.Sprint("gone-", i))
				synctest.Wait()
			}
		},
		"rewind": func(w *world, _ *tidings.Factory) {
			before := w.server.Snapshot()
			w.update("c", 3)
			rewind(w, before)
		},
	} {
		t.Run(reason, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "made")
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, flight.Options{Dir: dir}, calm, false)
				test(w, w.factory)
				time.Sleep(30 * time.Second)
				synctest.Wait()
				files, err := filepath.Glob(filepath.Join(dir, "*"))
				if err != nil || len(files) != 1 || !strings.HasSuffix(files[0], ".zip") {
					t.Fatalf("the directory has %v: %v", files, err)
				}
				recording, err := flight.Open(files[0])
				w.must(err)
				if want := reason + " of informer configmaps.v1"; recording.Reason != want {
					t.Errorf("the reason is %q, want %q", recording.Reason, want)
				}
				if info, err := os.Stat(files[0]); err != nil || info.Mode().Perm()&0o077 != 0 {
					t.Errorf("others may read it: %v, %v", info.Mode(), err)
				}
			})
		})
	}
}

func handle(w *world, factory *tidings.Factory, o tidings.HandlerOptions, f func(*corev1.ConfigMap)) {
	w.Helper()
	i, err := tidings.For[*corev1.ConfigMap](factory, tidings.Selection{})
	w.must(err)
	_, err = i.AddHandler(tidings.Funcs[*corev1.ConfigMap]{
		OnAdd: func(c *corev1.ConfigMap, _ bool) { f(c) },
	}, o)
	w.must(err)
}

// TestRecordingsAreRare panics twice a minute: there is one recording a minute, and not more than
// 20 of them stay.
func TestRecordingsAreRare(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, flight.Options{Dir: dir}, calm, false)
		handle(w, w.factory, tidings.HandlerOptions{IsolatePanics: true},
			func(c *corev1.ConfigMap) { panic(c.Name) })
		for i := range 60 {
			time.Sleep(30 * time.Second)
			w.create(fmt.Sprint("trigger-", i))
			synctest.Wait()
			if files, _ := filepath.Glob(filepath.Join(dir, "*.zip")); len(files) != min(20, 1+(i+1)/2) {
				t.Fatalf("after %v there are %d recordings", time.Duration(i+1)*30*time.Second, len(files))
			}
		}
	})
}

// TestCut leaves fields out of events in protobuf and of the base.
func TestCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, flight.Options{MaxAge: time.Minute, Cut: []string{"data"}}, calm, false)
		w.update("a", 150)
		track, err := w.dump().Track("")
		w.must(err)
		objects := 0
		for _, r := range track.Records {
			if bytes.Contains(r.Data, []byte(`"n"`)) {
				t.Fatalf("a record has the field: %s", r.Data)
			}
			if bytes.Contains(r.Data, []byte(`"kind":"ConfigMap"`)) {
				objects++
			}
		}
		if base := track.Base[0].Data; !bytes.Contains(base, []byte(`"name":"a"`)) ||
			bytes.Contains(base, []byte(`"n"`)) {
			t.Errorf("the base has %s", base)
		}
		if objects < 50 {
			t.Errorf("%d objects are in the records", objects)
		}
	})
}

// TestCutAnnotations cuts a field that an annotation repeats, as that of kubectl apply does.
func TestCutAnnotations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, flight.Options{MaxAge: time.Minute, Cut: []string{"data"}}, calm, false)
		for i := range 150 {
			c := configMap("a", fmt.Sprint("a-value-", i))
			c.Annotations = map[string]string{
				"note": "{stays}", corev1.LastAppliedConfigAnnotation: `{"kind":"ConfigMap","data":{"n":"a-value-` + fmt.Sprint(i) + `"}}`,
				"list": ` [{"kind":"ConfigMap","data":{"n":"a-value-1"}}]`,
			}
			_, err := w.server.Update(t.Context(), c)
			w.must(err)
			time.Sleep(time.Second)
			synctest.Wait()
		}
		track, err := w.dump().Track("")
		w.must(err)
		notes := 0
		for _, data := range append([][]byte{track.Base[0].Data}, dataOf(track)...) {
			if bytes.Contains(data, []byte("a-value")) {
				t.Fatalf("the field is in %s", data)
			}
			if bytes.Contains(data, []byte("{stays}")) {
				notes++
			}
		}
		if notes < 50 {
			t.Errorf("%d objects have the other annotation", notes)
		}
	})
}

func dataOf(track *flight.Track) (all [][]byte) {
	for _, r := range track.Records {
		all = append(all, r.Data)
	}
	return all
}

// TestRecordingsOfEarlierProcesses panics in one process after the other, with one directory: 20
// recordings stay, and unfinished ones are removed.
func TestRecordingsOfEarlierProcesses(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		for _, name := range []string{"tidings-20000101T000000Z-1.part", "of-somebody-else.zip", "notes.part"} {
			if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		var last string
		for range 30 {
			time.Sleep(5 * time.Minute)
			recorder, err := flight.New(flight.Options{Dir: dir, Logger: quiet})
			if err != nil {
				t.Fatal(err)
			}
			recorder.Ring().Event("panic", "x")
			last = time.Now().UTC().Format("20060102T150405Z")
		}
		files, err := filepath.Glob(filepath.Join(dir, "tidings-*"))
		if err != nil || len(files) != 20 || !strings.Contains(files[19], last) {
			t.Errorf("%d files, want 20 with that of %s: %v, %v", len(files), last, files, err)
		}
		if others, _ := filepath.Glob(filepath.Join(dir, "[on]*")); len(others) != 2 {
			t.Errorf("of the files of others, %v are left", others)
		}
	})
}

// TestBytes writes ten times as much as the recorder keeps.
func TestBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, flight.Options{MaxBytes: 1 << 20, MaxAge: time.Hour}, calm, false)
		for i := range 200 {
			c := configMap("a", strings.Repeat(fmt.Sprint(i%10), 50_000))
			_, err := w.server.Update(t.Context(), c)
			w.must(err)
			synctest.Wait()
		}
		if kept := w.recorder.Bytes(); kept > 1<<20 || kept < 1<<19 {
			t.Errorf("%d bytes are kept", kept)
		}
	})
}

// TestStoppedInformer stops an informer: nothing of it stays.
func TestStoppedInformer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, flight.Options{}, calm, false)
		if n := len(w.dump().Tracks); n != 1 {
			t.Errorf("%d tracks", n)
		}
		w.must(w.factory.Shutdown(t.Context()))
		if n := len(w.dump().Tracks); n != 0 {
			t.Errorf("%d tracks after the end of the informer", n)
		}
	})
}
