package debug

import (
	"embed"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

//go:embed static
var static embed.FS

//go:embed pages
var pages embed.FS

// policy is the content security policy.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; " +
	"img-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// FormHeader is the header of every answer with its FormVersion. Clients that know another
// version cannot read the figures.
const FormHeader = "Tidings-Debug-Version"

// FormVersion is the version of the JSON form. A new field does not change it. A field that changes
// its meaning or is removed does.
const FormVersion = "1"

func (h *Handler) routes() *http.ServeMux {
	mux := http.NewServeMux()
	for path, p := range map[string]page{
		"/{$}":        {"overview.html", h.overview},
		"/informer":   {"informer.html", h.informerPage},
		"/controller": {"controller.html", h.controllerPage},
		"/group":      {"group.html", h.groupPage},
		"/key":        {"key.html", h.keyPage},
		"/changes":    {"changes.html", h.changesPage},
	} {
		mux.Handle(path, h.handlerOf(p))
	}
	mux.HandleFunc("/stream", h.stream)
	mux.HandleFunc("/keys", h.complete)
	mux.Handle("POST /dump", crossOrigin.Handler(http.HandlerFunc(h.dump)))
	mux.Handle("/static/", http.FileServerFS(static))
	return mux
}

// ServeHTTP answers a request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cache-Control", "no-store")
	header.Set(FormHeader, FormVersion)
	switch {
	case !h.isAllowed(r.Host):
		http.Error(w, "debug: requests for the host "+strconv.Quote(r.Host)+" are not answered: use an "+
			"IP address or localhost, or add the name to Options.Hosts", http.StatusForbidden)
	case r.Method != http.MethodGet && r.Method != http.MethodHead && !isDump(r):
		header.Set("Allow", "GET, HEAD")
		http.Error(w, "debug: the pages are read-only: use GET", http.StatusMethodNotAllowed)
	default:
		r.ParseForm() //nolint:errcheck // of the query alone: FormValue would read a form in the body
		h.sampler.wake()
		h.mux.ServeHTTP(w, r)
	}
}

// isAllowed reports whether a Host header names this host, and not another site whose name
// resolves to it.
func (h *Handler) isAllowed(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.Trim(host, "[]"))
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	host = strings.TrimSuffix(host, ".")
	return host == "localhost" || strings.HasSuffix(host, ".localhost") ||
		host != "" && slices.ContainsFunc(h.o.Hosts, func(name string) bool {
			return strings.EqualFold(strings.TrimSuffix(name, "."), host)
		})
}
