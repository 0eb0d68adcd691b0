package cli

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/cmd/tidings/internal/problem"
	"github.com/tidings-go/tidings/cmd/tidings/internal/view"
)

// checkSynced reports whether all informers have listed, except those that the server refuses. It
// returns an error if one of them cannot list, and for refusals if all are refused or waiting
// would be in vain.
func (w *watcher) checkSynced() (bool, error) {
	waiting, synced := 0, 0
	var refused []*watchedType
	for t := range w.types() {
		health := t.informer.Health()
		t.state = health.State
		switch {
		case health.Synced:
			synced++
		case isRefused(health) && w.goal == nil:
			refused = append(refused, t)
		case isRefused(health) || isHopeless(health):
			return false, w.explain(t, health.LastError)
		default:
			waiting++
			w.noteFailure(t, health)
		}
	}
	if waiting+synced == 0 {
		return false, w.refusals(refused)
	}
	if synced > 0 {
		w.warnOfRefusals(refused)
	}
	return waiting == 0, nil
}

// noteFailure prints why a first list fails.
func (w *watcher) noteFailure(t *watchedType, health tidings.Health) {
	if health.State != tidings.StateBackoff {
		return
	}
	note := fmt.Sprintf("%s: %v; trying again", t, w.explain(t, health.LastError))
	if note != t.noted {
		t.noted = note
		w.printer.note(note)
	}
}

// refusals returns the errors of types that the server refuses.
func (w *watcher) refusals(refused []*watchedType) error {
	var errs []error
	for _, t := range refused {
		errs = append(errs, w.explain(t, t.informer.Health().LastError))
	}
	return errors.Join(errs...)
}

// warnOfRefusals prints once for each type that the server refuses it.
func (w *watcher) warnOfRefusals(refused []*watchedType) {
	for _, t := range refused {
		if t.refused {
			continue
		}
		t.refused = true
		w.warnings.Note("tidings: " + view.Printable(fmt.Sprintf("%s: %v; watching the other types",
			t, w.refusals([]*watchedType{t}))))
	}
}

// isRefused reports whether the server answers that a type may not be listed or does not exist.
func isRefused(health tidings.Health) bool {
	switch health.State {
	case tidings.StateForbidden, tidings.StateNoSuchResource:
		return health.LastError != nil
	}
	return false
}

// isHopeless reports whether a user should not wait for a first list.
func isHopeless(health tidings.Health) bool {
	return health.State == tidings.StateBackoff && health.LastError != nil &&
		(problem.Unreachable(health.LastError) || apierrors.IsBadRequest(health.LastError))
}
