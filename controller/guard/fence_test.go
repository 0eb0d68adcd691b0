package guard

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings/apisim"
)

var errTaken = errors.New("the lease was taken by b")

// TestC10_NoWriteUnderAClosedTerm writes before, at and after the end of a term.
func TestC10_NoWriteUnderAClosedTerm(t *testing.T) {
	inBubble(t, Options{}, func(r *rig) {
		term := newTerm(10 * time.Second)
		ctx, call := r.guard.Begin(r.Context(), term)
		call.Name = "rollout default/a"
		time.Sleep(10*time.Second - time.Millisecond)
		_, err := r.maps().Create(ctx, configMap("a"), metav1.CreateOptions{})
		r.must(err)
		time.Sleep(time.Millisecond)
		for range 2 { // the second time, the term has an error
			_, err = r.maps().Create(ctx, configMap("b"), metav1.CreateOptions{})
			e := r.isError(err, ErrFenced, "create configmaps default", "rollout default/a", "not sent",
				"lease ops/rollout")
			if e.Sent || term.Err() != nil && !errors.Is(err, errTaken) {
				r.Errorf("the error is %+v", e)
			}
			if term.Err() == nil {
				term.close(errTaken)
			}
		}
		if writes := call.End(); len(writes) != 1 {
			r.Errorf("the writes are %+v", writes)
		}
		if got, want := r.guard.Stats(), (Stats{Sent: 1, Fenced: 2}); got != want {
			r.Errorf("the counts are %+v, want %+v", got, want)
		}
		r.server.ExpectRequests(r, apisim.Match{Verb: "create"}, 1)
	})
}

// late is a transport whose answers come a second later.
type late struct{ next http.RoundTripper }

func (l late) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := l.next.RoundTrip(req)
	select {
	case <-time.After(time.Second):
		return resp, err
	case <-req.Context().Done():
		if err == nil {
			resp.Body.Close() //nolint:errcheck // the answer is not used
		}
		return nil, context.Cause(req.Context())
	}
}

// TestC10_WritesEndAtTheFence sends a write that the server does not answer in time.
func TestC10_WritesEndAtTheFence(t *testing.T) {
	for name, c := range map[string]struct {
		term, closed, renewed time.Duration // after 4 seconds
		config, deadline      time.Duration // the timeouts of the client and the context; 0: no timeout
		timeout               string        // the one that the server receives
		ends                  time.Duration
		late                  bool // the server's answer comes a second later
		fenced                bool
	}{
		"at the fence":          {term: 10 * time.Second, late: true, timeout: "10s", ends: 10 * time.Second, fenced: true},
		"in whole milliseconds": {term: 1500*time.Millisecond + 1, timeout: "1.5s", ends: 1500 * time.Millisecond},
		"closed before":         {term: 10 * time.Second, closed: 4 * time.Second, timeout: "10s", ends: 4 * time.Second, fenced: true},
		"renewed meanwhile":     {term: 10 * time.Second, renewed: 20 * time.Second, timeout: "10s", ends: 10 * time.Second},
		"a long term":           {term: time.Hour, timeout: "34s", ends: 34 * time.Second},
		"the client's timeout":  {term: time.Minute, config: 5 * time.Second, timeout: "5s", ends: 5 * time.Second},
		"the context's":         {term: time.Minute, deadline: 7 * time.Second, timeout: "7s", ends: 7 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, Options{}, func(r *rig) {
				r.server.Inject(apisim.Match{Verb: "update"}, apisim.Delay(time.Hour))
				config := r.server.Config()
				if c.late {
					config.Wrap(func(next http.RoundTripper) http.RoundTripper { return late{next} })
				}
				var err error
				r.guard, err = New(config, Options{})
				r.must(err)
				config = r.guard.Config()
				config.Timeout = c.config
				client, err := kubernetes.NewForConfig(config)
				r.must(err)
				obj := create(r, configMap("a"))
				term := newTerm(c.term)
				ctx, call := r.guard.Begin(r.Context(), term)
				if c.deadline > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, c.deadline)
					defer cancel()
				}
				if c.closed > 0 {
					time.AfterFunc(c.closed, func() { term.close(errTaken) })
				}
				if c.renewed > 0 {
					time.AfterFunc(4*time.Second, func() { term.renew(c.renewed) })
				}
				began := time.Now()
				_, err = client.CoreV1().ConfigMaps("default").Update(ctx, obj, metav1.UpdateOptions{})
				if took := time.Since(began); took != c.ends {
					r.Errorf("it took %v, want %v", took, c.ends)
				}
				if c.fenced {
					if e := r.isError(err, ErrFenced, "update configmaps default/a", "interrupted"); !e.Sent {
						r.Errorf("the error is %+v", e)
					}
				} else if errors.Is(err, ErrFenced) || err == nil {
					r.Errorf("the error is %v", err)
				}
				if got := r.guard.Stats().Interrupted; (got == 1) != c.fenced {
					r.Errorf("%d writes are counted as interrupted", got)
				}
				all := r.server.Requests().Of(apisim.Match{Verb: "update"})
				if len(all) != 1 || all[0].Query.Get("timeout") != c.timeout {
					r.Errorf("the server has got %v, want the timeout %s", all, c.timeout)
				}
				given, _ := time.ParseDuration(c.timeout)
				if w := r.only(call); !w.Unknown || !w.NotBefore.Equal(began.Add(given+grace)) {
					r.Errorf("it is noted as %+v", w)
				}
			})
		})
	}
}

// TestC10_TheCallEndsWithItsTerm cancels the context of a call when its term closes, as a
// controller does.
func TestC10_TheCallEndsWithItsTerm(t *testing.T) {
	inBubble(t, Options{}, func(r *rig) {
		r.server.Inject(apisim.Match{Verb: "create"}, apisim.Stall(0, 0))
		term := newTerm(time.Minute)
		ctx, cancel := context.WithCancelCause(r.Context())
		ctx, call := r.guard.Begin(ctx, term)
		time.AfterFunc(time.Second, func() {
			term.close(errTaken)
			cancel(errTaken)
		})
		if _, err := r.maps().Create(ctx, configMap("a"), metav1.CreateOptions{}); err == nil {
			r.Error("a create has succeeded")
		}
		r.wait()
		if got := r.guard.Stats().Interrupted; got != 1 || len(r.guard.open.open) > 0 {
			r.Errorf("%d interrupted, open: %v", got, r.guard.open.open)
		}
		if w := r.only(call); !w.Unknown || w.Name != "a" {
			r.Errorf("it is noted as %+v", w)
		}
	})
}

// TestC10_WritesWithoutACall writes under the default term. No write is recorded.
func TestC10_WritesWithoutACall(t *testing.T) {
	inBubble(t, Options{}, func(r *rig) {
		term := newTerm(10 * time.Second)
		_, err := r.maps().Create(r.Context(), configMap("a"), metav1.CreateOptions{})
		r.must(err)
		r.guard.SetDefaultTerm(term)
		_, err = r.maps().Create(r.Context(), configMap("b"), metav1.CreateOptions{})
		r.must(err)
		event := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "e"}}
		event.InvolvedObject.Namespace = "default"
		_, err = r.typed.CoreV1().Events("default").Create(r.Context(), event, metav1.CreateOptions{})
		r.must(err)
		time.Sleep(10 * time.Second)
		_, err = r.maps().Create(r.Context(), configMap("c"), metav1.CreateOptions{})
		r.isError(err, ErrFenced, "create configmaps default")
		event.Name = "late"
		_, err = r.typed.CoreV1().Events("default").Create(r.Context(), event, metav1.CreateOptions{})
		r.must(err)
		ctx, call := r.guard.Begin(r.Context(), nil)
		_, err = r.maps().Create(ctx, configMap("d"), metav1.CreateOptions{})
		r.must(err)
		r.only(call)
		r.guard.SetDefaultTerm(nil)
		_, err = r.maps().Create(r.Context(), configMap("e"), metav1.CreateOptions{})
		r.must(err)
		want := Stats{Sent: 6, Unattributed: 3, Events: 2, Fenced: 1}
		if got := r.guard.Stats(); got != want {
			r.Errorf("the counts are %+v, want %+v", got, want)
		}
	})
}

// TestC10_LateWritesAreRefused writes with the context of a call that has ended.
func TestC10_LateWritesAreRefused(t *testing.T) {
	inBubble(t, Options{}, func(r *rig) {
		ctx, call := r.guard.Begin(r.Context(), nil)
		call.Name = "rollout default/a"
		call.End()
		_, err := r.maps().Create(ctx, configMap("a"), metav1.CreateOptions{})
		r.isError(err, ErrLate, "rollout default/a")
		if _, err := r.maps().List(ctx, metav1.ListOptions{}); err != nil {
			r.Errorf("a read: %v", err)
		}
		if got, want := r.guard.Stats(), (Stats{Late: 1}); got != want || len(call.End()) > 0 {
			r.Errorf("the counts are %+v, want %+v", got, want)
		}
	})
}

// TestC03_UnansweredAtTheEnd ends a call before one of its writes is answered.
func TestC03_UnansweredAtTheEnd(t *testing.T) {
	inBubble(t, Options{}, func(r *rig) {
		r.server.Inject(apisim.Match{Verb: "create"}, apisim.Delay(5*time.Second))
		began := time.Now()
		ctx, call := r.guard.Begin(r.Context(), nil)
		go r.maps().Create(ctx, configMap("a"), metav1.CreateOptions{})
		r.wait()
		w := r.only(call)
		if !w.Unknown || w.Name != "" || !w.NotBefore.Equal(began.Add(inTime)) {
			r.Errorf("it is noted as %+v", w)
		}
		<-call.Done()
		if took := time.Since(began); took != 5*time.Second {
			r.Errorf("the call was done after %v", took)
		}
		stored := r.stored(configMaps, "a")
		if w := r.only(call); w.Unknown || w.Version != stored.GetResourceVersion() || w.Name != "a" {
			r.Errorf("it is noted as %+v", w)
		}
	})
}

func TestC10_RequirePreconditions(t *testing.T) {
	inBubble(t, Options{RequirePreconditions: true}, func(r *rig) {
		made := create(r, configMap("a"))
		given := configMap("a")
		ctx, call := r.guard.Begin(r.Context(), newTerm(time.Minute))
		defer call.End()
		_, err := r.maps().Update(ctx, given, metav1.UpdateOptions{})
		r.isError(err, ErrPrecondition, "update configmaps default/a", "metadata.resourceVersion")
		r.isError(r.maps().Delete(ctx, "a", metav1.DeleteOptions{}), ErrPrecondition, "delete configmaps")
		r.isError(r.maps().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}), ErrPrecondition)
		given.ResourceVersion = made.ResourceVersion
		_, err = r.maps().Update(ctx, given, metav1.UpdateOptions{})
		r.must(err)
		r.must(r.maps().Delete(ctx, "a", *metav1.NewPreconditionDeleteOptions(string(made.UID))))
		// Without a term there is nothing to guard against.
		free, other := r.guard.Begin(r.Context(), nil)
		defer other.End()
		r.must(r.maps().DeleteCollection(free, metav1.DeleteOptions{}, metav1.ListOptions{}))
		if got := r.guard.Stats().Refused; got != 3 {
			r.Errorf("%d are refused", got)
		}
	})
}

// TestC10_BytesNotSentAreDropped closes connections as at the fence. The peer sees a reset, which
// a close without it would not send.
func TestC10_BytesNotSentAreDropped(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	config := &rest.Config{}
	var open connections
	open.of(config)
	if _, err := config.Dial(t.Context(), "tcp", listener.Addr().String()); err != nil {
		t.Fatal(err)
	}
	peer, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	open.abort()
	if _, err := io.ReadAll(peer); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the peer reads %v", err)
	}
	if len(open.open) > 0 {
		t.Errorf("open: %v", open.open)
	}
}

// TestC10_ManyWritersAtTheFence has calls that write from several goroutines while their term
// closes and the calls end. Each write that the server applied was recorded or interrupted, and
// each write that it received was counted.
func TestC10_ManyWritersAtTheFence(t *testing.T) {
	inBubble(t, Options{}, func(r *rig) {
		r.server.Inject(apisim.Match{Verb: "create", Probability: 0.5}, apisim.Delay(time.Second))
		term := newTerm(time.Hour)
		time.AfterFunc(10500*time.Millisecond, func() { term.close(errTaken) })
		var writers sync.WaitGroup
		var noted atomic.Int64
		for i := range 8 {
			writers.Go(func() {
				for n := range 20 {
					ctx, call := r.guard.Begin(r.Context(), term)
					var inCall sync.WaitGroup
					for j := range 3 {
						inCall.Go(func() {
							name := fmt.Sprintf("m-%d-%d-%d", i, n, j)
							_, err := r.maps().Create(ctx, configMap(name), metav1.CreateOptions{})
							if err != nil && !errors.Is(err, ErrFenced) && !errors.Is(err, ErrLate) &&
								term.Err() == nil {
								r.Errorf("%s: %v", name, err)
							}
						})
					}
					time.Sleep(time.Second)
					call.End()
					inCall.Wait()
					<-call.Done()
					noted.Add(int64(len(call.Writes())))
				}
			})
		}
		writers.Wait()
		stats := r.guard.Stats()
		received := len(r.server.Requests().Of(apisim.Match{Verb: "create"}))
		if stats.Fenced == 0 || stats.Interrupted == 0 || uint64(noted.Load()) != stats.Sent ||
			uint64(received) > stats.Sent {
			r.Errorf("%d are noted, %d received, the counts are %+v", noted.Load(), received, stats)
		}
	})
}
