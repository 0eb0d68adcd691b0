package apisim

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/tidwall/btree"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// position is what a continue token says: which state the pages are of, and the
// key that the last one ended with.
type position struct {
	Version uint64 `json:"rv"`
	After   string `json:"after"`
	Pages   int    `json:"pages"` // before it
}

// next returns the position of the page after one that ended with a key.
func (p position) next(after string) position {
	return position{Version: p.Version, After: after, Pages: p.Pages + 1}
}

// pageNumber returns which page of a list a request asks for, 0 if it asks for something
// else.
func pageNumber(verb, token string) int {
	if verb != "list" {
		return 0
	}
	p, _ := parseToken(token) // a malformed token is answered with an error later
	return p.Pages + 1
}

func (p position) token() string {
	data, err := json.Marshal(p)
	if err != nil {
		panic(err) // two plain fields always marshal
	}
	return base64.RawURLEncoding.EncodeToString(data)
}

func parseToken(token string) (position, error) {
	var p position
	data, err := base64.RawURLEncoding.DecodeString(token)
	if err == nil {
		err = json.Unmarshal(data, &p)
	}
	if err != nil {
		return p, apierrors.NewBadRequest("continue key is not valid: " + err.Error())
	}
	return p, nil
}

func (s *Server) serveList(w http.ResponseWriter, r *http.Request, res *resource, p requestPath) {
	data, f, err := s.list(r, res, p)
	if err != nil {
		writeError(w, r, err)
		return
	}
	write(w, f.contentType(), http.StatusOK, data)
}

func (s *Server) list(r *http.Request, res *resource, p requestPath) ([]byte, form, error) {
	f, err := negotiate(r, res, listed)
	if err != nil {
		return nil, f, err
	}
	o, err := s.listOptions(r)
	if err != nil {
		return nil, f, err
	}
	selected, err := newSelection(res, p, o)
	if err != nil {
		return nil, f, err
	}
	objects, from, err := s.stateFor(r, res, o)
	if err != nil {
		return nil, f, err
	}
	if o.Continue == "" && o.ResourceVersion == "0" {
		o.Limit = 0 // as in Kubernetes, whose watch cache answers this
	}
	page, meta := pageOf(objects, from, selected, o.Limit)
	if c := callOf(r); c != nil && c.badPage != nil {
		page = c.badPage(page, from, &meta, o.Continue)
	}
	data, err := encodeList(res, f, meta, page)
	return data, f, err
}

// stateFor returns the state that a list is of, and the position at which its page
// begins.
func (s *Server) stateFor(r *http.Request, res *resource, o *internalversion.ListOptions) (*btree.Map[string, object], position, error) {
	if o.Continue != "" {
		return s.continued(r, res, o)
	}
	version, err := parseVersion(o.ResourceVersion)
	if err != nil {
		return nil, position{}, err
	}
	if err := s.await(r, version); err != nil {
		return nil, position{}, err
	}
	lag := lagOf(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	// A page of a version that is not 0 is of exactly that version, unless the
	// match says otherwise: so it was before there was a match.
	exact := o.ResourceVersionMatch == metav1.ResourceVersionMatchExact || (o.ResourceVersionMatch == "" && version > 0 && o.Limit > 0)
	if !exact && lag != nil && o.ResourceVersion != "" {
		return lag.ofLocked(res), position{Version: lag.version}, nil
	}
	if !exact {
		return res.objects.Copy(), position{Version: s.version}, nil
	}
	objects, ok := res.at(version)
	if !ok {
		return nil, position{}, errExpired(version, res.floor)
	}
	return objects, position{Version: version}, nil
}

// continued returns the state of the pages before. When the history no longer
// reaches it, the error carries a token to go on with the present state, which is
// inconsistent with the pages before.
func (s *Server) continued(r *http.Request, res *resource, o *internalversion.ListOptions) (*btree.Map[string, object], position, error) {
	from, err := parseToken(o.Continue)
	if err != nil {
		return nil, from, err
	}
	if o.ResourceVersion != "" && o.ResourceVersion != "0" {
		return nil, from, apierrors.NewBadRequest("specifying resource version is not allowed when using continue")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if from.Version == 0 { // a token of the error below
		return res.objects.Copy(), position{Version: s.version, After: from.After, Pages: from.Pages}, nil
	}
	objects, ok := res.at(from.Version)
	if c := callOf(r); !ok || c != nil && c.expireTokens {
		err := apierrors.NewResourceExpired("The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results.")
		err.ErrStatus.ListMeta.Continue = position{After: from.After, Pages: from.Pages}.token()
		return nil, from, err
	}
	return objects, from, nil
}

// pageOf returns the selected objects from a position on, limit at the most; 0 is no
// limit.
func pageOf(objects *btree.Map[string, object], from position, selected selection, limit int64) ([]object, metav1.ListMeta) {
	meta := metav1.ListMeta{ResourceVersion: versionString(from.Version)}
	var page []object
	var last string
	remaining := int64(0)
	prefix := selected.prefix()
	objects.Ascend(max(prefix, from.After), func(key string, obj object) bool {
		switch {
		case !strings.HasPrefix(key, prefix):
			return false
		case key == from.After || !selected.matches(obj):
		case limit > 0 && int64(len(page)) == limit:
			remaining++
			return selected.everything() // how many remain is only said when it is cheap
		default:
			page, last = append(page, obj), key
		}
		return true
	})
	if remaining > 0 {
		meta.Continue = from.next(last).token()
		if selected.everything() {
			meta.RemainingItemCount = &remaining
		}
	}
	return page, meta
}
