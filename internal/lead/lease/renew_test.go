package lease

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/internal/lead/lease/leasetest"
)

func (w *world) swap(change func(*Lease) error) (Instant, error) {
	return w.holder.Swap(w.Context(), "a", change)
}

func TestASwapKeepsWhatOthersHaveWritten(t *testing.T) {
	bubble(t, func(w *world) {
		w.change(note)
		w.server.Inject(leasetest.By("a", "update").Nth(2), apisim.Delay(time.Second))
		began := time.Now()
		sent, err := w.swap(w.renewal)
		if err != nil || sent.at.Sub(began) != 0 || time.Since(began) != time.Second {
			t.Errorf("the write took %v: %v", time.Since(began), err)
		}
		if w.sent("update") != 2 || w.sent("get") != 1 {
			t.Errorf("a conflict leads to\n%v", w.server.Requests())
		}
		stored := leasetest.Get(t, w.server, "rollout")
		if stored.Annotations == nil || w.view.ResourceVersion != stored.ResourceVersion {
			t.Errorf("stored is %v, and observed %v", stored, w.view)
		}
	})
}

func TestASwapEndsWhenOthersAreFasterTwice(t *testing.T) {
	bubble(t, func(w *world) {
		w.server.Inject(leasetest.By("a", "update"), apisim.Call(func(*http.Request) { w.change(note) }))
		if _, err := w.swap(w.renewal); !errors.Is(err, errOutpaced) || w.sent("update") != 2 {
			t.Errorf("%v after\n%v", err, w.server.Requests())
		}
		if err := w.term.Err(); err != nil {
			t.Errorf("the term has ended: %v", err)
		}
	})
}

// TestALeaseThatChangedEndsTheTerm has a swap meet a Lease that differs from the observed one.
func TestALeaseThatChangedEndsTheTerm(t *testing.T) {
	for name, test := range losses {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(w *world) {
				test.change(w)
				if _, err := w.swap(w.renewal); !errors.Is(err, ErrNotHeld) || w.sent("update") != 1 {
					t.Errorf("%v after\n%v", err, w.server.Requests())
				}
				if err := w.term.Err(); !errors.Is(err, test.want) || !errors.Is(err, ErrLost) {
					t.Errorf("the term has the error %v", err)
				}
				if _, err := w.swap(w.renewal); !errors.Is(err, ErrNotHeld) || w.sent("") != 2 {
					t.Errorf("%v, and what others hold is written:\n%v", err, w.server.Requests())
				}
			})
		})
	}
}

func TestASwapSendsNothingForAChangeThatFails(t *testing.T) {
	bubble(t, func(w *world) {
		failed := errors.New("failed")
		_, err := w.swap(func(*Lease) error { return failed })
		if !errors.Is(err, failed) || w.sent("") != 0 {
			t.Errorf("%v after\n%v", err, w.server.Requests())
		}
	})
}

func TestASwapEndsWithAReadThatFails(t *testing.T) {
	bubble(t, func(w *world) {
		w.change(note)
		w.server.Inject(leasetest.By("a", "get"), apisim.Refuse(http.StatusInternalServerError, 0))
		_, err := w.swap(w.renewal)
		if err == nil || !strings.HasPrefix(err.Error(), "get lease ops/rollout: ") ||
			w.sent("update") != 1 {
			t.Errorf("%v after\n%v", err, w.server.Requests())
		}
	})
}

func TestAReleaseLeavesNoHolderAndOneSecond(t *testing.T) {
	bubble(t, func(w *world) {
		w.change(note) // also after a conflict
		time.Sleep(time.Minute)
		_, err := w.swap(func(l *Lease) error {
			Release(l)
			return nil
		})
		s := leasetest.Get(t, w.server, "rollout").Spec
		if err != nil || *s.HolderIdentity != "" || *s.LeaseDurationSeconds != 1 ||
			*s.LeaseTransitions != 0 || time.Since(s.RenewTime.Time) > time.Second {
			t.Errorf("%v, %v", s, err)
		}
		if _, err := w.swap(w.renewal); !errors.Is(err, ErrNotHeld) {
			t.Errorf("a Lease that is released is renewed: %v", err)
		}
	})
}

func TestATransitionIsANewHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		l := new(Lease)
		check := func(name, holder string, transitions int32, acquired time.Duration) {
			t.Helper()
			s := l.Spec
			if HolderOf(l) != holder || *s.LeaseTransitions != transitions ||
				s.AcquireTime.Sub(began) != acquired || !s.RenewTime.Time.Equal(time.Now()) {
				t.Errorf("%s: %+v", name, s)
			}
			time.Sleep(time.Second)
		}
		Take(l, "a", 15)
		check("a new Lease", "a", 0, 0)
		l.ResourceVersion = "1"
		Take(l, "a", 15)
		check("a renewal", "a", 0, 0)
		Take(l, "b", 15)
		check("another holder", "b", 1, 2*time.Second)
		Release(l)
		check("a release", "", 1, 3*time.Second)
		Take(l, "b", 15)
		check("the same holder again", "b", 2, 4*time.Second)
		if HolderOf(nil) != "" || HolderOf(new(Lease)) != "" {
			t.Error("a Lease without a holder has one")
		}
	})
}

// TestARenewalChangesALeaseWhileTheClockStands: others take a Lease that does not change for one
// that is not renewed.
func TestARenewalChangesALeaseWhileTheClockStands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := new(Lease)
		Take(l, "a", 15)
		for range 3 {
			before := l.Spec.RenewTime.Time
			if Take(l, "a", 15); l.Spec.RenewTime.Time.Equal(before) {
				t.Errorf("the renewal leaves %v", before)
			}
		}
	})
}

func TestOldVersions(t *testing.T) {
	for versions, want := range map[[2]string]bool{
		{"9", "10"}: true, {"10", "10"}: true, {"11", "10"}: false, {"", "10"}: false, {"10", ""}: false,
		{"x", "10"}: false,
	} {
		if got := IsOlder(versions[0], versions[1]); got != want {
			t.Errorf("%q is older than %q: %t", versions[0], versions[1], got)
		}
	}
}

func TestRenewalsKeepATermOpen(t *testing.T) {
	bubble(t, func(w *world) {
		w.renew(nil)
		time.Sleep(time.Hour + time.Second)
		synctest.Wait()
		if w.term.Renewals() != 1200 || w.sent("") != 1200 || w.term.Remaining() != 11*time.Second {
			t.Errorf("%d renewals, %d requests, %v left, %v", w.term.Renewals(), w.sent(""),
				w.term.Remaining(), w.term.Err())
		}
	})
}

func TestRenewalsComeAsOftenFromASlowServer(t *testing.T) {
	bubble(t, func(w *world) {
		w.server.Inject(leasetest.By("a", "update"), apisim.Delay(2*time.Second))
		w.renew(nil)
		time.Sleep(time.Minute + 2*time.Second)
		synctest.Wait()
		// The time between renewals counts from their sending.
		if w.term.Renewals() != 20 || w.term.Remaining() != 10*time.Second {
			t.Errorf("%d renewals, %v left", w.term.Renewals(), w.term.Remaining())
		}
	})
}

func TestTheFirstRenewalCountsFromTheWriteThatWon(t *testing.T) {
	bubble(t, func(w *world) {
		time.Sleep(2 * time.Second) // the answer, and the beginning of the term
		w.renew(nil)
		time.Sleep(time.Second + time.Millisecond)
		synctest.Wait()
		if w.term.Renewals() != 1 {
			t.Errorf("%d renewals 3 s after the term was won", w.term.Renewals())
		}
	})
}

func TestARenewalComesBeforeItsTimeIfItIsAsked(t *testing.T) {
	bubble(t, func(w *world) {
		soon := make(chan struct{}, 1)
		w.renew(soon)
		time.Sleep(time.Second)
		soon <- struct{}{}
		synctest.Wait()
		if w.term.Renewals() != 1 || w.term.Remaining() != 12*time.Second {
			t.Errorf("%d renewals, %v left", w.term.Renewals(), w.term.Remaining())
		}
		time.Sleep(2999 * time.Millisecond)
		if w.sent("update") != 1 {
			t.Errorf("the next one came early:\n%v", w.server.Requests())
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if w.sent("update") != 2 {
			t.Errorf("the next one is late:\n%v", w.server.Requests())
		}
	})
}

// TestRenewalsWithoutAnAnswer has the wire go silent: each request ends after a fifth of the
// duration, and the term at its fence.
func TestRenewalsWithoutAnAnswer(t *testing.T) {
	bubble(t, func(w *world) {
		w.renew(nil)
		time.Sleep(10 * time.Second) // the last success was at 9 s
		last := time.Now().Add(-time.Second)
		w.silent.Store(true)
		wantClosed(t, w.term, last, 12*time.Second, ErrDeadline)
		if text := w.term.Err().Error(); !strings.Contains(text, "update lease ops/rollout: ") {
			t.Errorf("the error does not say why: %v", text)
		}
		// Three seconds each, and up to a second between them.
		if n := w.timeouts.Load(); n != 2 {
			t.Errorf("%d requests had no answer before the fence", n)
		}
		synctest.Wait()
		if n, _, err := w.failures.Get(); n != 2 || !IsTimeout(err) {
			t.Errorf("%d failures, the last one %v", n, err)
		}
		time.Sleep(time.Minute)
		if w.timeouts.Load() != 2 {
			t.Error("a term that has closed is renewed")
		}
	})
}

func TestASilenceThatEndsInTimeIsNoLoss(t *testing.T) {
	bubble(t, func(w *world) {
		w.renew(nil)
		time.Sleep(10 * time.Second)
		w.silent.Store(true)
		time.Sleep(7 * time.Second)
		w.silent.Store(false)
		time.Sleep(10 * time.Minute)
		if err := w.term.Err(); err != nil || w.timeouts.Load() == 0 {
			t.Errorf("%d timeouts, %v", w.timeouts.Load(), err)
		}
	})
}

// TestAWriteWithoutAnAnswerIsFoundByTheNext has a write applied whose answer is an error. The next
// write conflicts with it, and is sent again.
func TestAWriteWithoutAnAnswerIsFoundByTheNext(t *testing.T) {
	bubble(t, func(w *world) {
		w.server.Inject(leasetest.By("a", "update").Nth(1),
			apisim.RefuseApplied(http.StatusInternalServerError))
		w.renew(nil)
		time.Sleep(3*time.Second + 300*time.Millisecond)
		synctest.Wait()
		if w.term.Renewals() != 1 || w.sent("update") != 3 || w.sent("get") != 1 {
			t.Errorf("%d renewals after\n%v", w.term.Renewals(), w.server.Requests())
		}
	})
}

func TestRenewalsEndWithTheLease(t *testing.T) {
	for name, test := range losses {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(w *world) {
				began := time.Now()
				test.change(w)
				ended := false
				w.run(func(ctx context.Context) {
					w.holder.Renew(w.term.Context(), w.term, w.requests(), nil, w.renewal)
					ended = true
				})
				wantClosed(t, w.term, began, 3*time.Second, test.want)
				synctest.Wait()
				// A Lease that others hold is no failure of a request.
				if n, _, err := w.failures.Get(); !ended || n != 0 {
					t.Errorf("ended: %t, %d failures, %v", ended, n, err)
				}
			})
		})
	}
}
