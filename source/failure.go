package source

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"slices"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/internal/engine/tape"
)

const (
	// byReader is the cause of a request whose context had ended.
	byReader = "ended by the reader"
	// ownReason is a further one if that was no silence: a replay ends the watch in good order.
	ownReason = "for its own reason"
)

// recordedCauses are the errors that a recording names.
var recordedCauses = []struct {
	name string
	err  error
}{
	{"end of the stream", io.EOF},
	{"unexpected end", io.ErrUnexpectedEOF},
	{"streamed list refused", ErrStreamedListRefused},
	{"wrong scope", ErrWrongScope},
	{"namespaced", ErrNamespaced},
	{"silent", ErrSilent},
	{"torn", tape.ErrTorn},
	{"too large", ErrFrameTooLarge},
	{"cut frame", ErrCutFrame},
	{"malformed", ErrMalformed},
	{"unknown event", ErrUnknownEvent},
	{"redirect", ErrRedirect},
	{"options", errOptions},
	{"connection refused", syscall.ECONNREFUSED},
	{"connection reset", syscall.ECONNRESET},
}

// The causes that are types of errors.
const (
	unexpectedObject = "unexpected object"
	networkError     = "network"
)

// failed returns the record of an error of a request.
func failed(ctx context.Context, err error) tape.Record {
	var causes []string
	if cause := context.Cause(ctx); cause != nil {
		causes = append(causes, byReader)
		switch {
		case errors.Is(cause, tape.ErrTorn):
			err = cause // the source says that its context was cancelled
		case cause != ctx.Err() && !errors.Is(cause, ErrSilent):
			causes = append(causes, ownReason)
		}
	}
	f := &tape.Failure{Error: Bound(err).Error(), Causes: causes}
	if of, ok := errors.AsType[*Error](err); ok {
		f.Phase, f.Error = string(of.Phase), Bound(of.Err).Error()
	}
	for _, c := range recordedCauses {
		if errors.Is(err, c.err) {
			f.Causes = append(f.Causes, c.name)
		}
	}
	if _, ok := errors.AsType[*apierrors.UnexpectedObjectError](err); ok {
		f.Causes = append(f.Causes, unexpectedObject)
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		f.Causes = append(f.Causes, networkError)
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		f.Status, _ = json.Marshal(status.Status()) // a struct of texts and numbers
	}
	return tape.Record{Kind: tape.Failed, More: &tape.More{Failure: f}}
}

// isReaders reports whether the reader of a replay has to end a request itself.
func isReaders(f *tape.Failure) bool {
	return slices.Contains(f.Causes, byReader) && !slices.Contains(f.Causes, ownReason)
}

// failure returns the error that a record describes, of a request.
func failure(f *tape.Failure, r request) error {
	if slices.Contains(f.Causes, ownReason) && f.Phase == string(Streaming) {
		return io.EOF
	}
	var wraps []error
	for _, name := range f.Causes {
		switch name {
		case unexpectedObject:
			wraps = append(wraps, &apierrors.UnexpectedObjectError{})
		case networkError:
			wraps = append(wraps, &net.OpError{Op: r.op, Err: errors.New(f.Error)})
		}
		for _, c := range recordedCauses {
			if c.name == name {
				wraps = append(wraps, c.err)
			}
		}
	}
	var status metav1.Status
	if len(f.Status) > 0 && json.Unmarshal(f.Status, &status) == nil {
		wraps = append(wraps, &apierrors.StatusError{ErrStatus: status})
	}
	if f.Phase == "" && len(wraps) == 1 && wraps[0] == io.EOF {
		return io.EOF
	}
	replayed := &bounded{f.Error, errors.Join(wraps...)}
	if f.Phase != "" {
		return r.fail(Phase(f.Phase), replayed)
	}
	return replayed
}
