package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/cmd/tidings/internal/view"
)

const (
	// faultEvery is the time between two faults.
	faultEvery = 3 * time.Second
	// outage is how long the pods cannot be watched before the history is forgotten.
	outage = 500 * time.Millisecond
	// slowness is how long the slow handler takes for one change.
	slowness = 3 * time.Second
	// backupAge is how old a restored backup is. restoring is how long the server is down: after
	// ten seconds without contact, informers ask for its version.
	backupAge, restoring = 2 * time.Second, 11 * time.Second
	// longestBackoff bounds the waits of the informers, so that no fault lasts long.
	longestBackoff = 2 * time.Second
	// recoveryTimeout bounds how long the informers may take to recover.
	recoveryTimeout = time.Minute
	// recoveryEvery is how often a fault checks whether they have.
	recoveryEvery = 10 * time.Millisecond
)

// The types that single faults are about.
const (
	podType    = "pod"
	silentType = "configmap"
)

// faults makes things go wrong in a demo, one at a time, and prints what each cost.
type faults struct {
	d        *demonstration
	silencer *silencer
	slow     atomic.Bool // the slow handler is to be slow once
	handler  *tidings.Registration
	happened int // faults that were announced
}

func newFaults(d *demonstration) *faults {
	return &faults{d: d, silencer: newSilencer(silentType + "s")}
}

// addSlowHandler adds the handler that is slow at times.
func (f *faults) addSlowHandler() error {
	pods, err := tidings.For[*corev1.Pod](f.d.factory, tidings.Selection{})
	if err != nil {
		return err
	}
	work := tidings.HandlerFunc[*corev1.Pod](func(tidings.Event[*corev1.Pod]) {
		if f.slow.Swap(false) {
			time.Sleep(slowness)
		}
	})
	f.handler, err = pods.AddHandler(work, tidings.HandlerOptions{Name: "slow"})
	return err
}

// run makes one fault after the other happen until ctx ends.
func (f *faults) run(ctx context.Context) {
	all := []func(context.Context){f.cut, f.expire, f.beSlow, f.restore, f.fallSilent}
	for i := 0; sleep(ctx, faultEvery); i++ {
		all[i%len(all)](ctx)
	}
}

// sleep waits for a time. It reports whether ctx goes on.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// account is the state of the informers at a time.
type account struct {
	at       time.Time
	version  string // the newest
	informer map[string]tidings.Health
	versions map[string]string // of the cached objects
}

func (f *faults) account() account {
	a := account{
		at: time.Now(), informer: make(map[string]tidings.Health), versions: make(map[string]string),
	}
	for _, t := range f.d.types {
		health := t.health()
		a.informer[t.of.Singular], a.version = health, newerVersion(a.version, health.Version)
		for key, obj := range t.cached() {
			a.versions[t.of.Singular+" "+key] = obj.GetResourceVersion()
		}
	}
	return a
}

// changed counts the objects of a type, of all types for "", that differ between two accounts.
func (a account) changed(b account, of string) int {
	n := 0
	for key, version := range b.versions {
		if strings.HasPrefix(key, of) && a.versions[key] != version {
			n++
		}
	}
	for key := range a.versions {
		if _, ok := b.versions[key]; !ok && strings.HasPrefix(key, of) {
			n++
		}
	}
	return n
}

// await waits until the informer of a type, of all types for "", has recovered from a fault. It
// returns what the fault cost since before, and false if the informer has not recovered.
func (f *faults) await(ctx context.Context, before account, of string,
	recovered func(was, is tidings.Health) bool) (cost string, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, recoveryTimeout)
	defer cancel()
	for _, t := range f.d.types {
		if of != "" && of != t.of.Singular {
			continue
		}
		is := t.health()
		for is.State != tidings.StateWatching || !recovered(before.informer[t.of.Singular], is) {
			if !sleep(ctx, recoveryEvery) {
				return fmt.Sprintf("the informer of %s is %s after %s: %v", t.of.Plural, is.State,
					since(before), is.LastError), false
			}
			is = t.health()
		}
	}
	after, lists := f.account(), uint64(0)
	for name, health := range after.informer {
		lists += health.Lists - before.informer[name].Lists
	}
	return fmt.Sprintf("%s, %s changed meanwhile", view.Counted(lists, "list", "lists"),
		view.Counted(before.changed(after, of), "object", "objects")), true
}

// rewatched and relisted report whether an informer has begun another watch or list.
func rewatched(was, is tidings.Health) bool { return is.Watches > was.Watches }
func relisted(was, is tidings.Health) bool  { return is.Lists > was.Lists && rewatched(was, is) }

// announce counts a fault and prints which one happens.
func (f *faults) announce(name, what string) {
	f.happened++
	f.print(f.d.screen.Palette().Yellow("fault: "+name) + ": " + what)
}

// conclude prints the outcome of a fault.
func (f *faults) conclude(ok bool, outcome, cost string) {
	p := f.d.screen.Palette()
	if ok {
		f.print(p.Green(outcome) + ": " + cost)
	} else {
		f.print(p.Red("not recovered") + ": " + cost)
	}
}

func (f *faults) print(text string) {
	say(f.d.screen, "%s", text) //nolint:errcheck // the next change fails, too
}

// A fault that has begun goes on after the end of the demo, whose last comparison needs informers
// that have recovered.

// cut closes all connections.
func (f *faults) cut(ctx context.Context) {
	before := f.account()
	f.announce("connection cut", fmt.Sprintf("all %d watches break", len(before.informer)))
	f.d.server.CutConnections()
	cost, ok := f.await(context.WithoutCancel(ctx), before, "", rewatched)
	f.conclude(ok, fmt.Sprintf("resumed from RV %s after %s", before.version, since(before)), cost)
}

// expire breaks the watch of the pods, and forgets the history after which it would resume.
func (f *faults) expire(ctx context.Context) {
	before, lasting := f.account(), context.WithoutCancel(ctx)
	f.announce("410 Gone", "the server forgets the history that the watch of pods needs")
	match := apisim.Match{Verb: "watch", Resource: podType + "s", UserAgent: demoAgent}
	waiting := f.d.server.Inject(match, apisim.Delay(recoveryTimeout))
	defer waiting.Lift()
	f.d.server.CutConnections()
	// The other watches go on: they have all events when the history is forgotten.
	for name := range before.informer {
		if name == podType {
			continue
		}
		if cost, ok := f.await(lasting, before, name, rewatched); !ok {
			f.conclude(ok, "", cost)
			return
		}
	}
	sleep(lasting, outage)
	f.d.server.Compact()
	waiting.Lift()
	cost, ok := f.await(lasting, before, podType, relisted)
	f.conclude(ok, "listed again after "+since(before), cost)
}

// beSlow makes a handler of the pods slow.
func (f *faults) beSlow(ctx context.Context) {
	printing := f.d.types[slices.IndexFunc(f.d.types,
		func(t demoType) bool { return t.of.Singular == podType })].handler
	before := printing().Delivered
	f.announce("slow handler",
		fmt.Sprintf("a second handler of pods takes %v for one change", slowness))
	f.slow.Store(true)
	waiting, health := 0, f.handler.Health()
	for f.slow.Load() || health.State != tidings.HandlerIdle {
		if !sleep(ctx, recoveryEvery) {
			break
		}
		health = f.handler.Health()
		waiting = max(waiting, health.Pending)
	}
	f.slow.Store(false)
	f.conclude(true, view.Counted(waiting, "change", "changes")+" waited for it",
		fmt.Sprintf("the other handler received %d meanwhile", printing().Delivered-before))
}

// restore restores a backup of the server's storage.
func (f *faults) restore(ctx context.Context) {
	backup, then := f.d.server.Snapshot(), f.account()
	if !sleep(ctx, backupAge) {
		return
	}
	f.d.fleet.Pause() // nobody can write to a server that is down
	before, lasting := f.account(), context.WithoutCancel(ctx)
	f.announce("restored backup", fmt.Sprintf("the server is down, then at RV %s instead of %s",
		then.version, before.version))
	f.d.server.SetAvailable(false)
	f.d.server.Rewind(backup)
	sleep(lasting, restoring)
	f.d.server.SetAvailable(true)
	f.d.lag.Forget()
	cost, ok := f.await(lasting, before, "", relisted)
	f.d.fleet.Resume()
	f.d.fleet.TouchAll()
	f.conclude(ok, fmt.Sprintf("noticed after %v of outage", restoring), cost)
}

// fallSilent makes a watch silent.
func (f *faults) fallSilent(ctx context.Context) {
	before := f.account()
	f.announce("silent connection", "the watch of "+silentType+"s brings nothing any more")
	f.silencer.silence()
	cost, ok := f.await(ctx, before, silentType, rewatched)
	if !ok && ctx.Err() != nil {
		f.print("the demo ends before the silence is noticed: the connection is cut")
		f.d.server.CutConnections()
		cost, ok = f.await(context.WithoutCancel(ctx), before, "", rewatched)
	}
	f.conclude(ok, "closed and resumed after "+since(before), cost)
}

// since returns the time since an account, as text.
func since(a account) string { return view.Short(time.Since(a.at)) }
