package election

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/tidings-go/tidings/apisim"
)

func TestC03_ATermThatEndsInOrderLeavesItsVersions(t *testing.T) {
	bubble(t, func(t *world) {
		a := t.start(options("a"), 0)
		term, _ := t.term(a, 0)
		if _, ok := term.HandOver(); ok {
			t.Error("the first term has a hand-over")
		}
		want := map[string]string{"pods": "1234", "deployments.apps": "1240"}
		if err := term.SetHandOver(want); err != nil {
			t.Fatal(err)
		}
		b := t.start(options("b"), 0)
		time.Sleep(time.Minute)
		a.stop()
		second, _ := t.term(b, 0)
		if got, ok := second.HandOver(); !ok || !maps.Equal(got, want) {
			t.Errorf("b received %v, %t, want %v", got, ok, want)
		}

		if text, ok := t.lease().Annotations[handOverAnnotation]; ok {
			t.Errorf("the lease of b still has the hand-over %s", text)
		}

		// The versions of the first holder do not outlive the second one, which crashes.
		c := t.start(options("c"), 0)
		time.Sleep(10 * time.Second)
		t.server.Inject(by("b", ""), apisim.Drop())
		third, _ := t.term(c, 0)
		if got, ok := third.HandOver(); ok {
			t.Errorf("c received %v after a crash", got)
		}
	})
}

func TestC03_ATermWithoutVersionsLeavesNone(t *testing.T) {
	bubble(t, func(t *world) {
		a := t.start(options("a"), 0)
		t.term(a, 0)
		a.stop()
		<-a.done
		next, _ := t.term(t.start(options("b"), 0), 0)
		if got, ok := next.HandOver(); ok {
			t.Errorf("b received %v", got)
		}
	})
}

func TestTooManyVersionsAreAnErrorAndLeaveNone(t *testing.T) {
	bubble(t, func(t *world) {
		e := t.elector(options("a"))
		term := e.newTerm(t.Context(), "a", e.clock.Now(), nil)
		if err := term.SetHandOver(map[string]string{"pods": "1"}); err != nil {
			t.Fatal(err)
		}
		many := map[string]string{}
		for i := range 2000 {
			many[fmt.Sprintf("resources%d.example.com", i)] = "123456789"
		}
		t.wantText(term.SetHandOver(many), "the versions of 2000 resources take ")
		if left := term.leaves(); left != nil {
			t.Errorf("%d versions are left to the next holder", len(left))
		}
		term.End(ErrReleased)
	})
}

func TestHealthFollowsTheTerm(t *testing.T) {
	bubble(t, func(t *world) {
		a, b := t.elector(options("a")), t.elector(options("b"))
		if h := a.Health(); h.State != Stopped || h.Lease != "ops/rollout" {
			t.Errorf("before Run: %+v", h)
		}
		lead := func(ctx context.Context, _ *Term) error {
			<-ctx.Done()
			return nil
		}
		began := time.Now()
		t.run(a, lead)
		time.Sleep(time.Second)
		t.run(b, lead)
		time.Sleep(30 * time.Second)
		synctest.Wait()
		h := a.Health()
		if h.State != Leading || h.Holder != h.Identity || h.Renewals != 10 ||
			h.Remaining < fence-3*time.Second || h.LastError != nil || h.Polling != nil {
			t.Errorf("the holder: %+v", h)
		}
		t.wantBetween("the time of the holder", h.Since.Sub(began), 0, time.Second)
		if !strings.HasPrefix(h.Identity, "a_") {
			t.Errorf("the holder: %+v", h)
		}
		h = b.Health()
		if h.State != Standby || h.Holder != a.Health().Identity || h.Remaining != 0 || h.Renewals != 0 {
			t.Errorf("the standby: %+v", h)
		}
		t.server.SetAvailable(false)
		time.Sleep(20 * time.Second)
		if h := a.Health(); h.State != Standby || h.LastError == nil || h.LastErrorAt.IsZero() || h.Failures < 2 {
			t.Errorf("without a server: %+v", h)
		}
		t.server.SetAvailable(true)
	})
}

func TestAnOutageHasALineForEachChange(t *testing.T) {
	bubble(t, func(t *world) {
		var text strings.Builder
		o := options("a")
		o.Logger = slog.New(slog.NewTextHandler(&text, nil))
		a := t.start(o, 0)
		t.term(a, 0)
		t.server.SetAvailable(false)
		time.Sleep(duration * 10)
		t.server.SetAvailable(true)
		t.term(a, 1)
		time.Sleep(duration) // the watch begins again
		a.stop()
		<-a.done
		// The loop that writes and the one that watches have a line each.
		for _, line := range []string{
			"a request for the lease failed", "requests for the lease succeed again",
		} {
			if n := strings.Count(text.String(), line); n != 2 {
				t.Errorf("%d lines say %q:\n%s", n, line, text.String())
			}
		}
	})
}

func TestOnNewLeaderNamesEachHolder(t *testing.T) {
	bubble(t, func(t *world) {
		var named []string
		o := options("b")
		o.OnNewLeader = func(identity string) {
			name, _, _ := strings.Cut(identity, "_")
			if named = append(named, name); name == "a" {
				panic("of the first holder")
			}
		}
		a := t.start(options("a"), 0)
		t.term(a, 0)
		b := t.start(o, 0)
		time.Sleep(10 * time.Second)
		a.stop()
		t.term(b, 0)
		synctest.Wait()
		if got := strings.Join(named, ","); got != "a,,b" {
			t.Errorf("the holders were %q, want a, none, b", got)
		}
	})
}

// TestTheLoopIsNotHot counts the requests of a candidate whose writes fail, or are undone.
func TestTheLoopIsNotHot(t *testing.T) {
	touched := 0
	touch := func(t *world) {
		touched++
		t.change(func(lease *coordinationv1.Lease) {
			lease.Labels = map[string]string{"touched": fmt.Sprint(touched)}
		})
	}
	tests := map[string]func(t *world){
		"conflicts": func(t *world) {
			t.server.Inject(by("a", "update"), apisim.Call(func(*http.Request) { touch(t) }))
		},
		"refusals": func(t *world) { t.server.Inject(by("a", ""), apisim.Refuse(500, 0)) },
		"drops":    func(t *world) { t.server.Inject(by("a", ""), apisim.Drop()) },
		"watches":  func(t *world) { t.server.Inject(by("a", "watch"), apisim.CutAfter(1)) },
		"expired":  func(t *world) { t.server.Inject(by("a", "watch"), apisim.Fail(0, 410)) },
		"deletes": func(t *world) {
			t.server.Inject(by("a", "get"), apisim.Delay(time.Millisecond))
			var deleting sync.WaitGroup
			deleting.Go(func() {
				for t.Context().Err() == nil {
					time.Sleep(10 * time.Millisecond)
					//nolint:errcheck // the Lease may be gone
					t.server.Delete(t.Context(), leaseResource, "ops", "rollout")
				}
			})
			t.Cleanup(deleting.Wait)
		},
	}
	for name, disturb := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *world) {
				a := t.start(options("a"), 0)
				t.term(a, 0)
				disturb(t)
				time.Sleep(time.Minute)
				most := 0
				all := t.server.Requests().Of(by("a", ""))
				for i, first := range all {
					n := 0
					for _, other := range all[i:] {
						if other.Time.Sub(first.Time) < duration {
							n++
						}
					}
					most = max(most, n)
				}
				t.Logf("at most %d requests in %v", most, duration)
				if most > 80 {
					t.Errorf("%d requests in %v, want at most 80", most, duration)
				}
			})
		})
	}
}
