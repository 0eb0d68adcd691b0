package source

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	sigsjson "sigs.k8s.io/json"

	"github.com/tidings-go/tidings/internal/decode/fieldpath"
)

// This file bounds how much errors repeat of an answer: the texts of its Status, up to a
// limit, and nothing that may be part of an object.

const (
	// maxWord bounds each text of a Status.
	maxWord = 1 << 10
	// maxText bounds any other error, which may have a text of a Status in it.
	maxText = 2 << 10
	// maxCauses bounds the causes of a Status.
	maxCauses = 16
)

// Bound returns err with a text that fits into a log: each text of a Status is cut at 1 KiB,
// any other error at 2 KiB, and its size is added. A shorter error is returned unchanged.
// errors.As and the functions of apierrors return the same for the result as for err, and so
// does errors.Is, except for a Status that was cut. A nil err stays nil.
func Bound(err error) error {
	if err == nil {
		return nil
	}
	if status, ok := err.(*apierrors.StatusError); ok {
		if cut := boundStatus(status.ErrStatus); !reflect.DeepEqual(cut, status.ErrStatus) {
			return &apierrors.StatusError{ErrStatus: cut}
		}
		return err
	}
	if _, ok := errors.AsType[*Error](err); ok {
		return err // its cause was bound when it was made
	}
	if text := err.Error(); len(text) > maxText+sizeBytes {
		return &bounded{cutText(text, maxText), err}
	}
	return err
}

// BoundText returns a text of a server, such as the name of an object, as [Bound] cuts it.
func BoundText(text string) string { return cutText(text, maxWord) }

// bounded is an error with a shorter text.
type bounded struct {
	text string
	err  error
}

func (b *bounded) Error() string { return b.text }
func (b *bounded) Unwrap() error { return b.err }

// sizeBytes is more than the length of the size that is added to a cut text.
const sizeBytes = 64

// cutText cuts a text at limit bytes, and adds its size. It does not cut a text again.
func cutText(text string, limit int) string {
	if len(text) <= limit+sizeBytes {
		return text
	}
	end := limit
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	size := fmt.Sprintf("%d kB", len(text)>>10)
	if len(text) >= 1<<20 {
		size = fmt.Sprintf("%d MB", len(text)>>20)
	}
	return strings.Clone(text[:end]) + "… (" + size + ")"
}

func boundStatus(s metav1.Status) metav1.Status {
	s.ListMeta = metav1.ListMeta{
		ResourceVersion: s.ResourceVersion, Continue: s.Continue,
		RemainingItemCount: s.RemainingItemCount,
	}
	texts := []*string{
		&s.Message, (*string)(&s.Reason), &s.Status, &s.Kind, &s.APIVersion,
		&s.ResourceVersion, &s.Continue,
	}
	if s.Details != nil {
		d := *s.Details
		d.Causes = append([]metav1.StatusCause(nil), d.Causes[:min(len(d.Causes), maxCauses)]...)
		texts = append(texts, &d.Name, &d.Group, &d.Kind, (*string)(&d.UID))
		for i := range d.Causes {
			cause := &d.Causes[i]
			texts = append(texts, (*string)(&cause.Type), &cause.Message, &cause.Field)
		}
		s.Details = &d
	}
	for _, text := range texts {
		*text = cutText(*text, maxWord)
	}
	return s
}

// markup is in the summary of a page.
const markup = "bytes of markup"

// summary describes data that was received in the place of an object, without any of it: errors are
// logged, and it may be a part of a Secret.
func summary(b []byte) string {
	trimmed := bytes.TrimSpace(b)
	switch {
	case bytes.HasPrefix(trimmed, []byte("<")):
		return fmt.Sprintf("%d %s, as a proxy or a login page sends", len(b), markup)
	case bytes.HasPrefix(trimmed, []byte("HTTP/")):
		return fmt.Sprintf("%d bytes that begin like another HTTP answer", len(b))
	}
	return fmt.Sprintf("%d bytes", len(b))
}

var (
	kindForm    = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,62}$`)
	versionForm = regexp.MustCompile(`^([a-z0-9.-]{1,253}/)?v[0-9][a-z0-9]{0,30}$`)
	eventForm   = regexp.MustCompile(`^[A-Z]{1,32}$`)
)

// WrongKind returns the error about an object of another kind. It quotes the kind and the
// version that the server sent only if they have the form of a kind and of a version.
func WrongKind(got, want schema.GroupVersionKind) *WrongObjectError {
	return &WrongObjectError{Got: receivedKind(got), Want: kindName(want)}
}

// receivedKind names a kind that a server has sent.
func receivedKind(got schema.GroupVersionKind) string {
	version := got.GroupVersion().String()
	if version != "" && !versionForm.MatchString(version) {
		version = fmt.Sprintf("(no API version, %d bytes)", len(version))
	}
	kind := got.Kind
	if kind != "" && !kindForm.MatchString(kind) {
		kind = fmt.Sprintf("(no kind, %d bytes)", len(kind))
	}
	return kindIn(version, kind)
}

// UnknownEvent returns an [ErrUnknownEvent] that names the type of the event, if it has the
// form of one.
func UnknownEvent(name string) error {
	if !eventForm.MatchString(name) {
		return fmt.Errorf("%w of %d bytes", ErrUnknownEvent, len(name))
	}
	return fmt.Errorf("%w %q", ErrUnknownEvent, name)
}

// kindName names a kind that is known.
func kindName(gvk schema.GroupVersionKind) string {
	return kindIn(gvk.GroupVersion().String(), gvk.Kind)
}

func kindIn(version, kind string) string {
	if kind == "" {
		kind = "(any)"
	}
	return strings.TrimSpace(version + " " + kind)
}

// undecodable returns why JSON could not be decoded, without the values that stood there, which
// decoders quote.
func undecodable(err error) error {
	if err == nil {
		return nil
	}
	if syntax, offset := sigsjson.SyntaxErrorOffset(err); syntax {
		text := err.Error()
		if i := strings.LastIndex(text, "' "); i >= 0 { // behind the character that was found
			text = "invalid character" + text[i+1:]
		}
		return fmt.Errorf("%s, at byte %d", text, offset)
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		value, _, _ := strings.Cut(wrong.Value, " ")
		text := fmt.Sprintf("%s at byte %d, where %v is expected", value, wrong.Offset, wrong.Type)
		if where := strings.Trim(wrong.Struct+"."+wrong.Field, "."); where != "" {
			text += fmt.Sprintf(": field %q", where)
		}
		return errors.New(text)
	}
	if _, ok := errors.AsType[*time.ParseError](err); ok {
		return errors.New("a time that is not in the form of RFC 3339")
	}
	if number, ok := errors.AsType[*strconv.NumError](err); ok {
		return fmt.Errorf("a number: %w", number.Err)
	}
	if corrupt, ok := errors.AsType[base64.CorruptInputError](err); ok {
		return corrupt
	}
	if errors.Is(err, resource.ErrFormatWrong) || errors.Is(err, resource.ErrNumeric) ||
		errors.Is(err, resource.ErrSuffix) {
		return errors.New("a text that is not a quantity")
	}
	return fmt.Errorf("a value that its Go type refuses, with a %T", err)
}

// undecodableField returns undecodable(err) of an encoded object with the field, if err does not
// name one: types with decoders of their own know of no field.
func undecodableField(err error, data []byte, into any) error {
	made := undecodable(err)
	wrong, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if ok && wrong.Field != "" || !json.Valid(data) {
		return made
	}
	if path := fieldpath.Failing(data, reflect.TypeOf(into), unmarshalJSON); path != "" {
		return fmt.Errorf("%w: field %q", made, path)
	}
	return made
}

// withoutURL takes the method and the URL off an error of net/http: they say less than the
// fields of Error, repeat a long query, and may have a password in them.
func withoutURL(err error) error {
	urlErr, ok := errors.AsType[*url.Error](err)
	if !ok {
		return err
	}
	return urlErr.Err
}
