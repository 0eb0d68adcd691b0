package server

import (
	"net/http"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/tidings-go/tidings/bench/internal/objects"
)

// encodeUpdates returns the frames of the updates of a spec, one after another.
func encodeUpdates(s Spec) ([]byte, error) {
	var frames []byte
	err := s.updates(func(o objects.Object) error {
		var err error
		frames, err = appendFrame(frames, s.Encoding, watch.Modified, o)
		return err
	})
	return frames, err
}

// write writes in chunks, and reports whether the client took everything.
func write(w http.ResponseWriter, frames []byte) bool {
	for len(frames) > 0 {
		n := min(chunk, len(frames))
		if _, err := w.Write(frames[:n]); err != nil {
			return false // the client has gone
		}
		frames = frames[n:]
	}
	return http.NewResponseController(w).Flush() == nil
}
