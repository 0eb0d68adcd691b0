package source

import (
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
	options := metav1.ListOptions{Limit: o.Limit, Continue: o.Continue}
	if o.Continue == "" && o.Version != "" {
		options.ResourceVersion, options.ResourceVersionMatch = o.Version, metav1.ResourceVersionMatchNotOlderThan
	}
	r, err := s.request(ctx, "list", options, o.Heard)
	if err != nil {
		return Page[T]{}, err
	}
	resp, err := s.client.get(ctx, r)
	if err != nil {
		s.forget(err)
		return Page[T]{}, err
	}
	page, err := s.readPage(ctx, resp, o)
	if err != nil {
		return Page[T]{}, r.fail(phaseOfBody(err), err)
	}
	return page, nil
}

// phaseOfBody says in which phase the reading of an answer failed.
func phaseOfBody(err error) Phase {
	if errors.Is(err, ErrSilent) {
		return Streaming
	}
	return Decoding
}

// reading returns the reader of the body of a page.
func (s *REST[T]) reading(ctx context.Context, body io.Reader, heard func()) *reading {
	return &reading{
		ctx: ctx, body: body, heard: heard,
		limit: int64(s.options.MaxListBytes), least: s.leastObject, budget: s.options.budgetOf(s.client),
	}
}

// readPage reads the body of a list and closes it. One in protobuf is read and decoded
// piece by piece, any other is read first.
func (s *REST[T]) readPage(ctx context.Context, resp *http.Response, o ListOptions) (Page[T], error) {
	defer resp.Body.Close()
	r := s.reading(ctx, resp.Body, o.Heard)
	defer r.done()
	mediaType := mediaTypeOf(resp)
	if mediaType == protobufType {
		return s.readProtobufPage(r, o.Held)
	}
	body, err := readBody(r)
	if err != nil {
		return Page[T]{}, err
	}
	return s.decodePage(r, mediaType, body, o.Held)
}

// decodePage takes a list apart, which is all of the body of r, and decodes its items, but
// for those in JSON that are held.
func (s *REST[T]) decodePage(r *reading, mediaType string, body []byte, held Held) (Page[T], error) {
	var page Page[T]
	switch mediaType {
	case protobufType:
		e, err := openEnvelope(body)
		if err != nil {
			return page, err
		}
		if err := s.checkListKind(&e); err != nil {
			return page, err
		}
		var items [][]byte
		head, err := openList(e.raw, func(message []byte) error {
			items = append(items, message)
			return r.object(len(message))
		})
		if err != nil {
			return page, err
		}
		page.Version, page.Continue, page.Remaining = head.version, head.token, head.remaining
		return page, s.decodeItems(&page, items, len(e.raw), s.decoder.protobuf)
	case jsonType:
		list, err := openJSONList(body, r.object)
		if errors.Is(err, ErrFrameTooLarge) {
			return page, err
		}
		if err != nil {
			return page, fmt.Errorf("%w list in JSON: %w, received %s", ErrMalformed, err, shown(body))
		}
		if !list.of(s.decoder.wants()) {
			return page, &WrongObjectError{Got: receivedKind(list.GroupVersionKind()), Want: "a list of " + kindName(s.decoder.wants())}
		}
		return s.decodeJSONList(&list, held)
	default:
		return page, fmt.Errorf("%w: the list came as %q, which was not asked for", ErrMalformed, mediaType)
	}
}

// decodeJSONList decodes the items of a list, but for those that are held.
func (s *REST[T]) decodeJSONList(list *jsonList, held Held) (Page[T], error) {
	page := Page[T]{Version: list.ResourceVersion, Continue: list.Continue}
	if list.RemainingItemCount != nil {
		page.Remaining = *list.RemainingItemCount
	}
	asker := s.askerFor(held, false)
	items, size := make([][]byte, 0, len(list.Items)), 0
	for _, item := range list.Items {
		if !asker.holds(item) {
			items = append(items, item)
			size += len(item)
		}
	}
	of := s.decoder
	if open, ok := of.(kindFromList[T]); ok {
		of = open.ofList(list.GroupVersionKind())
	}
	err := s.decodeItems(&page, items, size, func(item []byte) (T, error) { return of.json(item, true) })
	return page, err
}

// checkListKind returns why what is in an envelope is no list of the source's objects.
func (s *REST[T]) checkListKind(e *envelope) error {
	if want := s.decoder.wants().Kind + "List"; string(e.kind) != want {
		return &WrongObjectError{Got: receivedKind(e.groupVersionKind()), Want: want}
	}
	return nil
}

// decodeItems decodes items of size bytes in all, on several goroutines if that is worth
// it, and appends them to a page in their order, up to the first that is malformed.
func (s *REST[T]) decodeItems(page *Page[T], items [][]byte, size int, decode func([]byte) (T, error)) error {
	begin := len(page.Items)
	page.Items = slices.Grow(page.Items, len(items))[:begin+len(items)]
	to := page.Items[begin:]
	done, err := inOrder(len(items), size, func(i int) (err error) {
		to[i], err = itemOrWrong(decode(items[i]))
		return err
	})
	page.Items = page.Items[:begin+done]
	return err
}

// ErrNameless is an object without a name, which none has that a server keeps. It is the Err
// of an [Item].
var ErrNameless = errors.New("an object without a name")

// itemOrWrong describes a decoded object. An object of another kind, or without a name, is
// an item that says so; any other error stays one.
func itemOrWrong[T Object](obj T, err error) (Item[T], error) {
	switch {
	case err == nil && obj.GetName() == "":
		return Item[T]{Err: ErrNameless}, nil
	case err == nil:
		return ItemOf(obj), nil
	}
	if _, wrong := errors.AsType[*WrongObjectError](err); wrong {
		return Item[T]{Err: err}, nil
	}
	return Item[T]{}, err
}
