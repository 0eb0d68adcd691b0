package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// List reads one page.
func (s *REST[T]) List(ctx context.Context, o ListOptions) (Page[T], error) {
	if s.client.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.client.timeout)
		defer cancel()
	}
	options := metav1.ListOptions{Limit: o.Limit, Continue: o.Continue, ShardSelector: o.ShardSelector}
	if o.Continue == "" && o.Version != "" {
		options.ResourceVersion = o.Version
		options.ResourceVersionMatch = metav1.ResourceVersionMatchNotOlderThan
	}
	r, err := s.request(ctx, "list", options, o.Key, o.OnActivity)
	if err != nil {
		return Page[T]{}, err
	}
	resp, err := s.client.get(ctx, r)
	if err != nil {
		return Page[T]{}, s.refused(ctx, r, err)
	}
	if o.Continue == "" {
		s.learnKind(ctx, o.OnActivity)
	}
	page, err := s.readPage(ctx, resp, o)
	if err != nil {
		s.resetResource(ctx, err)
		return Page[T]{}, r.fail(phaseOfBody(err), err)
	}
	return page, nil
}

func phaseOfBody(err error) Phase {
	if errors.Is(err, ErrSilent) {
		return Streaming
	}
	return Decoding
}

func (s *REST[T]) pageReader(ctx context.Context, body io.Reader, onActivity func()) *pageReader {
	return &pageReader{
		ctx: ctx, body: body, onActivity: onActivity, limit: int64(s.options.MaxListBytes),
		objectSize: s.objectSize, budget: cmp.Or(s.options.ListBudget, &s.client.budget),
	}
}

// readPage reads the body of a list and closes it. A list in protobuf is decoded while it
// arrives, one in JSON is read first.
func (s *REST[T]) readPage(ctx context.Context, resp *http.Response,
	o ListOptions) (Page[T], error) {
	defer resp.Body.Close()
	r := s.pageReader(ctx, resp.Body, o.OnActivity)
	defer r.done()
	switch mediaType := mediaTypeOf(resp); mediaType {
	case protobufType:
		return s.readProtobufPage(r, s.filterFor(o.Selects, o.IsCached, true))
	case jsonType:
		return s.readJSONPage(r, s.filterFor(o.Selects, o.IsCached, false))
	default:
		return Page[T]{}, fmt.Errorf("%w: the list came as %q", errForeign, mediaType)
	}
}

// readJSONPage reads a list in JSON and decodes its items, except those that are dropped.
func (s *REST[T]) readJSONPage(r *pageReader, filter *filter) (page Page[T], err error) {
	body, err := readBody(r)
	if err != nil {
		return page, err
	}
	list, err := openJSONList(body, r.object)
	if errors.Is(err, ErrFrameTooLarge) {
		return page, err
	}
	if err != nil {
		return page, fmt.Errorf("%w list in JSON: %w, received %s",
			ErrMalformed, err, summary(body))
	}
	if want := s.decoder.wants(); !list.isListOf(want) {
		return page, &WrongObjectError{
			Got: receivedKind(list.GroupVersionKind()), Want: "a list of " + kindName(want),
		}
	}
	page.setMeta(&list.ListMeta)
	items, size := make([][]byte, 0, len(list.Items)), 0
	for _, item := range list.Items {
		if !filter.drops(item) {
			items = append(items, item)
			size += len(item)
		}
	}
	kind := list.GroupVersionKind()
	err = s.decodeItems(&page, items, size, false, func(item []byte) (T, error) {
		return s.decoder.json(item, kind)
	})
	return page, err
}

func (p *Page[T]) setMeta(list *metav1.ListMeta) {
	p.Version, p.Continue, p.Sharded = list.ResourceVersion, list.Continue, list.ShardInfo != nil
	if list.RemainingItemCount != nil {
		p.Remaining = *list.RemainingItemCount
	}
}

// checkListKind returns an error if an envelope holds no list of the source's objects.
func (s *REST[T]) checkListKind(e *envelope) error {
	if want := s.decoder.wants().Kind + "List"; string(e.kind) != want {
		return &WrongObjectError{Got: receivedKind(e.groupVersionKind()), Want: want}
	}
	return nil
}

// decodeItems decodes items of size bytes in all, on several goroutines if that is worth it,
// and appends them to a page in their order, up to the first malformed one.
func (s *REST[T]) decodeItems(page *Page[T], items [][]byte, size int, protobuf bool,
	decode func([]byte) (T, error)) error {
	begin := len(page.Items)
	page.Items = slices.Grow(page.Items, len(items))[:begin+len(items)]
	to := page.Items[begin:]
	done, err := inOrder(len(items), size, func(i int) (err error) {
		obj, err := decode(items[i])
		to[i], err = itemOf(obj, err, items[i], protobuf, s.decoder.wants())
		return err
	})
	page.Items = page.Items[:begin+done]
	return err
}

// ErrNameless is an object without a name, which a server never keeps. It is the Err of an
// [Item].
var ErrNameless = errors.New("an object without a name")
