package secrets

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"log/slog"
	"sync"
	"testing"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/flight"
)

const (
	// Token is planted as the bearer token of clients.
	Token = "planted-bearer-token"
	// Content is planted as the content of objects.
	Content = "planted-content"
	// Number is planted where a number is.
	Number = "31337313373133731337"
)

// Output searches what a test writes and shows. Its zero value is ready.
type Output struct {
	mu    sync.Mutex // guards the rest
	size  int
	found []string
}

// planted are the texts to search for.
var planted = [][]byte{
	[]byte("planted-"), []byte(Number[:10]),
	[]byte(base64.StdEncoding.EncodeToString([]byte(Content))[:16]),
}

// Write searches a line.
func (o *Output) Write(line []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.size += len(line)
	for _, p := range planted {
		if at := bytes.Index(line, p); at >= 0 && len(o.found) < 10 {
			o.found = append(o.found, string(line[max(0, at-200):min(len(line), at+100)]))
		}
	}
	return len(line), nil
}

// Print searches values in the forms that programs print.
func (o *Output) Print(values ...any) {
	for _, v := range values {
		fmt.Fprintf(o, "%v\n%+v\n%#v\n", v, v, v)
	}
}

// PrintHealth searches the health of informers, and their errors.
func (o *Output) PrintHealth(all ...tidings.Health) {
	for _, h := range all {
		o.Print(h, h.LastError, h.LastDropped, h.LastTransformError, h.LastIndexError)
	}
}

// PrintRecording searches what a recorder has kept, and returns it.
func (o *Output) PrintRecording(t testing.TB, recorder *flight.Recorder) *flight.Recording {
	t.Helper()
	var file bytes.Buffer
	if err := recorder.Dump(&file, "a test"); err != nil {
		t.Fatal(err)
	}
	recording, err := flight.Read(bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil {
		t.Fatal(err)
	}
	for _, track := range recording.Tracks {
		o.Print(track.Collection)
		for _, object := range track.Base {
			o.Print(object.Key, string(object.Data))
		}
		for _, r := range track.Records {
			o.Print(string(r.Data), r.Key, r.Version)
			if r.More != nil && r.More.Failure != nil {
				o.Print(r.More.Failure.Error, string(r.More.Failure.Status))
			}
		}
	}
	return recording
}

// Logger returns a logger whose lines of all levels are searched.
func (o *Output) Logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(o, &slog.HandlerOptions{Level: slog.Level(-100)}))
}

// Check fails the test for planted texts that were found since the last call, and if less was
// searched than so many bytes: the test would see nothing.
func (o *Output) Check(t testing.TB, least int) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.found) > 0 {
		t.Errorf("printed: %q", o.found)
	}
	if o.size < least {
		t.Errorf("only %d bytes were printed: the test sees nothing", o.size)
	}
	o.size, o.found = 0, nil
}
