package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/cmd/tidings/internal/view"
)

// TestServiceSavesWhileItRuns asks that changes are saved within saveEvery, that nothing is
// written when there are none, and that a save that fails is tried again.
func TestServiceSavesWhileItRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out, notes bytes.Buffer
		directory := filepath.Join(t.TempDir(), "states")
		path := filepath.Join(directory, "state.json")
		s := &service{
			o: serveOptions{save: path}, state: archive{path: path},
			screen: view.NewScreen(&out, &notes, view.ScreenOptions{}), server: apisim.Start(t),
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.run(ctx) }()
		time.Sleep(saveEvery + time.Second)
		synctest.Wait()
		if !strings.Contains(notes.String(), "tidings: the state cannot be saved in "+path) || !strings.HasSuffix(notes.String(), "; the next attempt is in 10s\n") {
			t.Errorf("there is no directory, and the notes are %q", notes.String())
		}
		if err := os.Mkdir(directory, 0o700); err != nil {
			t.Fatal(err)
		}
		time.Sleep(saveEvery)
		synctest.Wait()
		if _, err := os.Stat(path); err != nil {
			t.Errorf("it was not tried again: %v", err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		time.Sleep(saveEvery)
		synctest.Wait()
		if _, err := os.Stat(path); err == nil {
			t.Error("it was saved again without a change")
		}
		if _, err := s.server.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "new"}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(saveEvery)
		synctest.Wait()
		if text, err := os.ReadFile(path); err != nil || !strings.Contains(string(text), `"name":"new"`) {
			t.Errorf("a change was not saved: %v\n%s", err, text)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
