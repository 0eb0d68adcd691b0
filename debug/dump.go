package debug

import (
	"bytes"
	"net/http"
	"time"
)

// crossOrigin refuses requests that change something and come from pages of another site.
var crossOrigin = http.NewCrossOriginProtection()

// dump answers with a recording of Options.Recorder, as a file to save.
func (h *Handler) dump(w http.ResponseWriter, r *http.Request) {
	if h.o.Recorder == nil {
		http.Error(w, "debug: there is no flight recorder: set Options.Recorder", http.StatusNotFound)
		return
	}
	var file bytes.Buffer // so that no part of a file is sent before an error
	if err := h.o.Recorder.Dump(&file, "the page"); err != nil {
		http.Error(w, "debug: "+err.Error(), http.StatusInternalServerError)
		return
	}
	name := "tidings-" + time.Now().UTC().Format("20060102T150405Z") + ".zip"
	w.Header().Set("Content-Type", "application/zip")
	w.Header().Set("Content-Disposition", `attachment; filename="`+name+`"`)
	file.WriteTo(w) //nolint:errcheck // the client has gone
}

func isDump(r *http.Request) bool { return r.Method == http.MethodPost && r.URL.Path == "/dump" }
