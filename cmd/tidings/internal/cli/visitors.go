package cli

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// onlyPrograms returns a handler that answers no web page. The servers of this program ask for
// no credentials, so that any page in a browser on this machine could read and write there:
//
//  1. A connection to the loopback address has to name it as the Host. The name of a page that
//     has been made to resolve to this machine is another one.
//  2. A request that a page of another origin has made is refused, whatever it asks for.
//  3. A body needs a content type, which a page cannot send elsewhere without being asked about.
func onlyPrograms(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case isLoopback(r.Context().Value(http.LocalAddrContextKey)) && !namesLoopback(r.Host):
			refuse(w, http.StatusMisdirectedRequest, metav1.StatusReasonForbidden, fmt.Sprintf("the Host %q is not this machine: use localhost or 127.0.0.1", r.Host))
		case isForeign(r):
			refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden, "a web page of another origin may not use this server")
		case r.ContentLength != 0 && !isTyped(r.Header.Get("Content-Type")):
			refuse(w, http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType, "a body needs a Content-Type that says what object it is, such as application/json")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// isLoopback reports whether an address is one that only this machine reaches.
func isLoopback(address any) bool {
	tcp, ok := address.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// namesLoopback reports whether a Host names this machine's loopback address.
func namesLoopback(host string) bool {
	name := host
	if before, _, err := net.SplitHostPort(host); err == nil {
		name = before
	}
	if strings.EqualFold(name, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(strings.Trim(name, "[]"))
	return err == nil && (ip.IsLoopback() || ip.IsUnspecified())
}

// isForeign reports whether a browser says that a page of another origin made a request.
func isForeign(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "cross-site", "same-site":
		return true
	}
	for _, origin := range r.Header.Values("Origin") {
		if u, err := url.Parse(origin); err != nil || u.Scheme != "http" || !strings.EqualFold(u.Host, r.Host) {
			return true
		}
	}
	return false
}

// isTyped reports whether a content type is one that a page may not send to another origin
// without a request that asks for it first.
func isTyped(contentType string) bool {
	mediaType, _, _ := strings.Cut(contentType, ";")
	switch strings.ToLower(strings.TrimSpace(mediaType)) {
	case "", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data":
		return false
	}
	return true
}

// refuse answers with a Status.
func refuse(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	json.NewEncoder(w).Encode(metav1.Status{ //nolint:errcheck // the client has gone
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message,
	})
}
