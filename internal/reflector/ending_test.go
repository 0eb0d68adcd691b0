package reflector

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/internal/delta"
	"github.com/tidings-go/tidings/source"
)

// TestEndingOf has a row for each answer to a watch, when it is opened and when it runs.
func TestEndingOf(t *testing.T) {
	errBusy := &apierrors.StatusError{ErrStatus: metav1.Status{Code: 503, Details: &metav1.StatusDetails{RetryAfterSeconds: 1}}}
	tooLarge := &apierrors.StatusError{ErrStatus: metav1.Status{Code: 504, Reason: metav1.StatusReasonTimeout, Details: &metav1.StatusDetails{RetryAfterSeconds: 1}}}
	tests := map[string]struct {
		err           error
		opened, while cause // when the watch is opened, and while it runs
	}{
		"closed queue":        {fmt.Errorf("push: %w", delta.ErrClosed), stopped, stopped},
		"outlived":            {errOutlived, torn, torn},
		"quiet":               {errQuiet, torn, torn},
		"end of file":         {io.EOF, broken, finished},
		"400":                 {status(400, metav1.StatusReasonBadRequest), undecodable, undecodable},
		"401":                 {status(401, metav1.StatusReasonUnauthorized), refused, refused},
		"403":                 {errForbidden, refused, refused},
		"404":                 {errNotFound, lost, lost},
		"410":                 {errExpired, expired, expired},
		"410 gone":            {status(410, metav1.StatusReasonGone), expired, expired},
		"414":                 {status(414, metav1.StatusReasonUnknown), refused, refused},
		"422":                 {status(422, metav1.StatusReasonInvalid), undecodable, undecodable},
		"429":                 {errTooMany(0), busy, busy},
		"431":                 {status(431, metav1.StatusReasonUnknown), refused, refused},
		"500":                 {errInternal, refused, refused},
		"500 unreadable":      {status(500, metav1.StatusReasonStoreReadError), lost, lost},
		"503":                 {status(503, metav1.StatusReasonServiceUnavailable), refused, refused},
		"503 with a wait":     {errBusy, busy, busy},
		"504 with a wait":     {tooLarge, refused, refused},
		"malformed":           {errDecoding, undecodable, undecodable},
		"malformed, no phase": {fmt.Errorf("%w bookmark", source.ErrMalformed), undecodable, undecodable},
		"unknown event":       {source.ErrUnknownEvent, undecodable, undecodable},
		"too large":           {&source.Error{Phase: source.Decoding, Err: source.ErrFrameTooLarge}, undecodable, undecodable},
		"no status":           {&apierrors.UnexpectedObjectError{}, refused, refused},
		"connection refused":  {errRefused, broken, broken},
		"connection cut":      {errCut, broken, broken},
		"silent":              {&source.Error{Phase: source.Streaming, Err: source.ErrSilent}, broken, broken},
		"error of net/http":   {&url.Error{Op: "Get", Err: io.ErrUnexpectedEOF}, broken, broken},
		"error of net":        {&net.OpError{Op: "dial", Err: errors.New("no route")}, broken, broken},
		"deadline":            {context.DeadlineExceeded, broken, broken},
		"lister's own":        {errors.New("I do not watch"), refused, broken},
	}
	for name, test := range tests {
		if got := classify(test.err, false).cause; got != test.opened {
			t.Errorf("%s, when the watch is opened: %d, want %d", name, got, test.opened)
		}
		if got := classify(test.err, true).cause; got != test.while {
			t.Errorf("%s, while it runs: %d, want %d", name, got, test.while)
		}
	}
}
