package reflector

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings/source"
)

var (
	errDenied  = apierrors.NewForbidden(schema.GroupResource{Resource: "objects"}, "", errors.New("no rule allows it"))
	errPatient = apierrors.NewTooManyRequests("later", 1)
)

// TestFailuresAreToldByStep has every step of list and watch fail once.
func TestFailuresAreToldByStep(t *testing.T) {
	var told []string
	o := Options[object]{OnFailure: func(ended Step, err error) { told = append(told, fmt.Sprintf("%s: %v", ended, err)) }}
	run(t, []answer{
		{expect: "stream", err: errDenied},
		{expect: "stream", err: source.ErrStreamedListRefused},
		{expect: `list "0" 500 ""`, err: errPatient},
		{expect: `list "0" 500 ""`, page: source.Page[object]{Version: "5"}},
		{expect: "watch 5", err: errDenied},
		{expect: "watch 5", reads: []read{{err: errPatient}}},
		{expect: "watch 5"},
	}, o, func(*Reflector[object], *script, *journal) {
		passTheWaits()
		same(t, "told", told,
			fmt.Sprintf("streamed list: %v", errDenied),
			fmt.Sprintf("list: %v", errPatient),
			fmt.Sprintf("opening the watch: %v", errDenied),
			fmt.Sprintf("watch: %v", errPatient))
	})
}

func TestPagesAfterFailureOfAStreamedList(t *testing.T) {
	run(t, []answer{
		{expect: "stream", err: errPatient}, // asks for patience: no pages
		{expect: "stream", err: errDenied},
		{expect: `list "0" 500 ""`, page: source.Page[object]{Items: []source.Item[object]{item("a", "3")}, Version: "5"}},
		{expect: "watch 5"},
	}, Options[object]{PagesAfterFailure: true}, func(_ *Reflector[object], _ *script, j *journal) {
		passTheWaits()
		same(t, "queue", j.read(), "replace 5 (new history false): a@3")
	})
}

// passTheWaits lets every wait after a failure pass, in virtual time.
func passTheWaits() {
	time.Sleep(time.Hour / 12)
	synctest.Wait()
}

// TestDeletedUnreadableObjectIsFoundByAList: no event tells of the delete of an object
// that the server could not read any more.
func TestDeletedUnreadableObjectIsFoundByAList(t *testing.T) {
	unreadable := status(500, metav1.StatusReasonStoreReadError)
	run(t, []answer{
		listed(read{err: unreadable}),
		{expect: "stream", reads: []read{{events: []source.Event[object]{bookmark(source.InitialEventsEnd, "9")}}}},
	}, Options[object]{}, func(_ *Reflector[object], _ *script, j *journal) {
		passTheWaits()
		same(t, "queue", j.read(), "replace 5 (new history false): a@3", "replace 9 (new history false):")
	})
}

// TestListedObjectWithoutAUIDIsTakenAsListed: a fake has one version for everything, and
// no UIDs.
func TestListedObjectWithoutAUIDIsTakenAsListed(t *testing.T) {
	changed := item("a", "3")
	changed.UID, changed.Object.note = "", "changed"
	known := func(string) (object, string, string, bool) { return object{name: "a", version: "3"}, "3", "", true }
	run(t, []answer{
		{expect: `list "0" 500 ""`, page: source.Page[object]{Items: []source.Item[object]{changed}, Version: "3"}},
		{expect: "watch 3"},
	}, Options[object]{NoStreamedLists: true, Known: known}, func(_ *Reflector[object], _ *script, j *journal) {
		same(t, "queue", j.read(), "replace 3 (new history false): a@3changed")
	})
}

// TestErrorsNameLongVersionsInPart has a server set back from a version of a million digits.
func TestErrorsNameLongVersionsInPart(t *testing.T) {
	const most = 4 << 10
	long := strings.Repeat("9", 1<<20)
	var log strings.Builder
	logger := slog.New(slog.NewTextHandler(&log, nil))
	told := 0
	o := Options[object]{Logger: logger, OnFailure: func(_ Step, err error) { told = max(told, len(err.Error())) }}
	run(t, []answer{
		listed(read{events: []source.Event[object]{event(source.Modified, "a", long)}},
			read{events: []source.Event[object]{bookmark(source.Bookmark, "7")}}),
		probed("8"),
		{expect: "stream"},
	}, o, func(r *Reflector[object], _ *script, _ *journal) {
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if err := r.Health().LastError; !errors.Is(err, errRewound) || len(err.Error()) > most {
			t.Errorf("the last error has %d bytes: %.100v", len(err.Error()), err)
		}
	})
	if told > most || log.Len() > 2*most {
		t.Errorf("errors of %d bytes are told, and %d bytes are logged", told, log.Len())
	}
}

// TestErrorsNameLongKeysInPart makes a transform fail on an object whose name is a megabyte long.
func TestErrorsNameLongKeysInPart(t *testing.T) {
	const most = 4 << 10
	var log strings.Builder
	o := Options[object]{
		Logger:    slog.New(slog.NewTextHandler(&log, nil)),
		Transform: func(object) (object, error) { return object{}, errors.New("no") },
	}
	run(t, []answer{listed(read{events: []source.Event[object]{event(source.Modified, strings.Repeat("a", 1<<20), "6")}})}, o,
		func(r *Reflector[object], _ *script, _ *journal) {
			if err := r.Health().LastTransformError; err == nil || len(err.Error()) > most {
				t.Errorf("the last error of the transform is %.100v", err)
			}
		})
	if log.Len() > 3*most {
		t.Errorf("%d bytes are logged", log.Len())
	}
}
