package apisim

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// position is the content of a continue token: the version of the pages, and the last key of the
// page before.
type position struct {
	Version uint64 `json:"rv"`
	After   string `json:"after"`
	Pages   int    `json:"pages"` // the number of pages before
}

func (p position) next(after string) position {
	return position{Version: p.Version, After: after, Pages: p.Pages + 1}
}

// pageNumber returns the number of the page of a list request, 0 for other requests.
func pageNumber(verb, token string) int {
	if verb != "list" {
		return 0
	}
	p, _ := parseToken(token) // the answer to a malformed token is an error
	return p.Pages + 1
}

func (p position) token() string {
	data, err := json.Marshal(p)
	if err != nil {
		panic(err) // plain fields always marshal
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

// listRequest is a parsed request for a list or a watch.
type listRequest struct {
	*internalversion.ListOptions
	form     form
	selected objectSelection
	version  uint64 // 0 is any version
}

func (x *exchange) parseList(c content) (l listRequest, err error) {
	if l.form, err = x.negotiate(x.res, c); err != nil {
		return l, err
	}
	l.ListOptions = &internalversion.ListOptions{}
	if err = x.decodeParameters(l.ListOptions); err != nil {
		return l, err
	}
	x.server.mu.Lock()
	streams := !x.server.refuseStreams && !x.refuseStreams
	x.server.mu.Unlock()
	if problems := validation.ValidateListOptions(l.ListOptions, streams); len(problems) > 0 {
		return l, errInvalidOptions("ListOptions", problems)
	}
	if l.version, err = parseVersion(l.ResourceVersion); err != nil {
		return l, err
	}
	l.selected, err = newSelection(x.res, x.path, l.ListOptions)
	if err == nil && l.ShardSelector != "" && x.server.o.ShardedListAndWatch {
		l.selected.shards, err = parseShards(l.ShardSelector)
	}
	return l, err
}

// parseVersion parses a resource version; "" is 0.
func parseVersion(text string) (uint64, error) {
	if text == "" {
		return 0, nil
	}
	version, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, apierrors.NewBadRequest(
			`Invalid value: "` + text + `": the resource version is not a number`)
	}
	return version, nil
}

// futureWait is the time for which a request waits for a version of the future, as in a real
// server.
const futureWait = 3 * time.Second

func (x *exchange) await(version uint64) error {
	timeout := time.After(futureWait)
	for {
		x.server.mu.Lock()
		current, later := x.reachedLocked()
		x.server.mu.Unlock()
		if version <= current {
			return nil
		}
		select {
		case <-later:
		case <-timeout:
			return errTooNew(version, current)
		case <-x.r.Context().Done():
			return context.Cause(x.r.Context())
		}
	}
}

// listPage is one page of a list, or the whole list.
type listPage struct {
	objects []object
	meta    metav1.ListMeta
	shards  *metav1.ShardInfo // nil without a shard selector
}

func (x *exchange) list() (answer, error) {
	l, err := x.parseList(objectList)
	if err != nil {
		return answer{}, err
	}
	objects, from, err := x.stateFor(l)
	if err != nil {
		return answer{}, err
	}
	if l.Continue == "" && l.ResourceVersion == "0" {
		l.Limit = 0 // as Kubernetes' watch cache does
	}
	page := pageOf(objects, from, l.selected, l.Limit)
	if x.badPage != nil {
		x.badPage(&page, from, l.Continue)
	}
	return listAnswer(x.res, l.form, page)
}

// stateFor returns the state for a list, and the position of its page.
func (x *exchange) stateFor(l listRequest) (*objectTree, position, error) {
	if l.Continue != "" {
		return x.continued(l)
	}
	if err := x.await(l.version); err != nil {
		return nil, position{}, err
	}
	x.server.mu.Lock()
	defer x.server.mu.Unlock()
	// A page at a version that is not 0 is of exactly that version, unless there is a
	// resourceVersionMatch. That was the rule before the parameter existed.
	exact := l.ResourceVersionMatch == metav1.ResourceVersionMatchExact ||
		l.ResourceVersionMatch == "" && l.version > 0 && l.Limit > 0
	switch {
	case l.ResourceVersion == "":
		return x.res.objects.Copy(), position{Version: x.server.version}, nil
	case !exact:
		objects, version := x.stateLocked()
		return objects, position{Version: version}, nil
	}
	objects, ok := x.res.at(l.version)
	if !ok {
		return nil, position{}, errExpired(l.version, x.res.floor)
	}
	return objects, position{Version: l.version}, nil
}

// continued returns the state of the pages before. When the history no longer reaches it, the error
// has a token to continue with the present state, which is inconsistent with the pages before.
func (x *exchange) continued(l listRequest) (*objectTree, position, error) {
	from, err := parseToken(l.Continue)
	if err != nil {
		return nil, from, err
	}
	if l.ResourceVersion != "" && l.ResourceVersion != "0" {
		return nil, from, apierrors.NewBadRequest(
			"specifying resource version is not allowed when using continue")
	}
	x.server.mu.Lock()
	defer x.server.mu.Unlock()
	if from.Version == 0 { // the token is of the error below
		from.Version = x.server.version
		return x.res.objects.Copy(), from, nil
	}
	objects, ok := x.res.at(from.Version)
	if !ok || x.expireTokens {
		err := apierrors.NewResourceExpired("The provided continue parameter is too old to display " +
			"a consistent list result. You can start a new list without the continue parameter, " +
			"or use the continue token in this response to retrieve the remainder of the results.")
		err.ErrStatus.ListMeta.Continue = position{After: from.After, Pages: from.Pages}.token()
		return nil, from, err
	}
	return objects, from, nil
}

// pageOf returns the selected objects from a position on, at most limit of them; 0 or less is no
// limit.
func pageOf(objects *objectTree, from position, selected objectSelection, limit int64) listPage {
	page := listPage{meta: metav1.ListMeta{ResourceVersion: versionString(from.Version)}}
	if selected.shards != nil {
		page.shards = &metav1.ShardInfo{Selector: selected.shards.String()}
	}
	last := ""
	remaining := int64(0)
	for key, obj := range inNamespace(objects, selected.namespace, from.After) {
		if key == from.After || !selected.matches(obj) {
			continue
		}
		if limit <= 0 || int64(len(page.objects)) < limit {
			page.objects, last = append(page.objects, obj), key
			continue
		}
		remaining++
		if !selected.isEverything() {
			break // the remaining objects are counted only without a selection
		}
	}
	if remaining > 0 {
		page.meta.Continue = from.next(last).token()
		if selected.isEverything() {
			page.meta.RemainingItemCount = &remaining
		}
	}
	return page
}
