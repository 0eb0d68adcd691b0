package reflector

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/internal/engine/delta"
	"github.com/tidings-go/tidings/source"
)

// TestClassify has a row for each error of a list, and of a watch before and after it began. The
// state is Backoff if it is not given.
func TestClassify(t *testing.T) {
	const again, unready, missing = 1, 2, 4 // ending.transient and so on
	decoding := func(err error) error { return &source.Error{Phase: source.Decoding, Err: err} }
	tests := map[string]struct {
		err             error
		before, after   cause // the watch began
		flags           int
		state           health.State
		retryAfterInSec int
	}{
		"closed queue":        {err: fmt.Errorf("push: %w", delta.ErrClosed), before: stopped, after: stopped, flags: again},
		"slots came":          {err: errSlotsCame, before: outgrown, after: outgrown, flags: again},
		"outlived":            {err: errOutlived, before: torn, after: torn, flags: again},
		"quiet":               {err: errQuiet, before: torn, after: torn, flags: again},
		"end of file":         {err: io.EOF, before: broken, after: finished, flags: again},
		"endless":             {err: fmt.Errorf("list: %w", errRepeatedPage), before: endless, after: endless},
		"400":                 {err: status(400, metav1.StatusReasonBadRequest), before: undecodable, after: undecodable},
		"401":                 {err: status(401, metav1.StatusReasonUnauthorized), before: refused, after: refused, state: health.StateForbidden},
		"403":                 {err: errForbidden, before: refused, after: refused, state: health.StateForbidden},
		"404":                 {err: errNotFound, before: lost, after: lost, flags: missing, state: health.StateNoSuchResource},
		"410":                 {err: errExpired, before: expired, after: expired},
		"410 gone":            {err: status(410, metav1.StatusReasonGone), before: expired, after: expired},
		"414":                 {err: status(414, metav1.StatusReasonUnknown), before: refused, after: refused},
		"422":                 {err: status(422, metav1.StatusReasonInvalid), before: undecodable, after: undecodable},
		"429":                 {err: errTooMany(0), before: busy, after: busy, flags: again | unready},
		"429 with a wait":     {err: errTooMany(7), before: busy, after: busy, flags: again | unready, retryAfterInSec: 7},
		"431":                 {err: status(431, metav1.StatusReasonUnknown), before: refused, after: refused},
		"500":                 {err: errInternal, before: refused, after: refused, flags: again},
		"500 unreadable":      {err: errUnreadable, before: lost, after: lost, flags: again},
		"503":                 {err: errUnavailable, before: refused, after: refused, flags: again},
		"503 with a wait":     {err: statusAfter(503, "", 1), before: busy, after: busy, flags: again, retryAfterInSec: 1},
		"504 with a wait":     {err: statusAfter(504, metav1.StatusReasonTimeout, 1), before: refused, after: refused, flags: again, retryAfterInSec: 1},
		"malformed":           {err: errDecoding, before: undecodable, after: undecodable, flags: again},
		"malformed, no phase": {err: fmt.Errorf("%w bookmark", source.ErrMalformed), before: undecodable, after: undecodable, flags: again},
		"unknown event":       {err: source.ErrUnknownEvent, before: undecodable, after: undecodable, flags: again},
		"too large":           {err: decoding(source.ErrFrameTooLarge), before: undecodable, after: undecodable},
		"no status":           {err: &apierrors.UnexpectedObjectError{}, before: refused, after: refused, flags: again},
		"not reached":         {err: errRefused, before: broken, after: broken, flags: again},
		"connection refused":  {err: &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, before: broken, after: broken, flags: again | unready},
		"connection cut":      {err: errCut, before: broken, after: broken, flags: again},
		"silent":              {err: &source.Error{Phase: source.Streaming, Err: source.ErrSilent}, before: broken, after: broken, flags: again},
		"wrong scope":         {err: &source.Error{Phase: source.Connecting, Err: source.ErrWrongScope}, before: broken, after: broken, flags: again, state: health.StateNoSuchResource},
		"error of net/http":   {err: &url.Error{Op: "Get", Err: io.ErrUnexpectedEOF}, before: broken, after: broken, flags: again},
		"error of net":        {err: &net.OpError{Op: "dial", Err: errors.New("no route")}, before: broken, after: broken, flags: again},
		"deadline":            {err: context.DeadlineExceeded, before: broken, after: broken, flags: again},
		"lister's own":        {err: errors.New("I do not watch"), before: refused, after: broken, flags: again},
	}
	var found [len(classes)]bool
	for name, test := range tests {
		for _, begun := range []bool{false, true} {
			f := newFailure(test.err, begun)
			found[slices.IndexFunc(classes[:], func(c class) bool { return c.test(f) })] = true
		}
		if test.state == "" {
			test.state = health.StateBackoff
		}
		want := ending{
			cause: test.before, state: test.state, retryAfter: time.Duration(test.retryAfterInSec) * time.Second,
			transient: test.flags&again > 0, unready: test.flags&unready > 0,
			missing: test.flags&missing > 0, silent: name == "silent",
		}
		if got := classify(test.err, false); got != want {
			t.Errorf("%s, before the watch began: %+v, want %+v", name, got, want)
		}
		want.cause = test.after
		if got := classify(test.err, true); got != want {
			t.Errorf("%s, after the watch began: %+v, want %+v", name, got, want)
		}
	}
	if row := slices.Index(found[:], false); row >= 0 {
		t.Errorf("no error is of class %d, which has the cause %s", row, classes[row].cause)
	}
}
