package cli

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/internal/see/format"
)

const (
	// faultEvery is the time between two faults.
	faultEvery = 3 * time.Second
	// outage is the time without a watch of the pods before the history is dropped.
	outage = 500 * time.Millisecond
	// backupAge is the age of a restored backup. restoring is the time for which the server is
	// down: after ten seconds without contact, informers ask for its version.
	backupAge, restoring = 2 * time.Second, 11 * time.Second
	// forbidding is the time for which a type is forbidden.
	forbidding = 6 * time.Second
	// longestBackoff bounds the backoff of the informers, so that no fault lasts long.
	longestBackoff = 2 * time.Second
	// silentFrom is the number of the first event or bookmark that a silent watch does not send.
	// The watch reaches it before silentAfter, and has brought a bookmark before: the events that a
	// watch brings at its beginning are fewer.
	silentFrom, silentAfter = 15, 15 * bookmarkEvery
	// recoveryTimeout bounds the time until the informers have recovered.
	recoveryTimeout = time.Minute
	// recoveryEvery is the period of the checks whether they have recovered.
	recoveryEvery = 10 * time.Millisecond
)

// The types that single faults affect.
const (
	podType       = "pod"
	silentType    = "configmap"
	forbiddenType = "service"
)

// faults injects faults in a demo, one at a time, and prints the cost of each.
type faults struct {
	d        *demonstration
	happened int // number of announced faults
}

// run injects one fault after the other until ctx ends.
func (f *faults) run(ctx context.Context) {
	all := []func(context.Context){f.cut, f.expire, f.forbid, f.restore, f.fallSilent}
	for i := 0; sleep(ctx, faultEvery); i++ {
		all[i%len(all)](ctx)
	}
}

// sleep waits for a time. It reports whether ctx has not ended.
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
	version  string // the newest of all informers
	informer map[string]tidings.Health
	versions map[string]string // versions of the cached objects
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

// changed counts the objects that differ between two accounts: those of a type, or all for "".
func (a account) changed(b account, of string) (n int) {
	keys := maps.Clone(a.versions)
	maps.Copy(keys, b.versions)
	for key := range keys {
		if strings.HasPrefix(key, of) && a.versions[key] != b.versions[key] {
			n++
		}
	}
	return n
}

// await waits until the informer of a type, or each informer for "", has recovered from a fault. It
// returns the cost of the fault since before, and whether the informers have recovered.
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
	return fmt.Sprintf("%s, %s changed meanwhile", format.Counted(lists, "list", "lists"),
		format.Counted(before.changed(after, of), "object", "objects")), true
}

// rewatched and relisted report whether an informer has begun another watch or list.
func rewatched(was, is tidings.Health) bool { return is.Watches > was.Watches }
func relisted(was, is tidings.Health) bool  { return is.Lists > was.Lists && rewatched(was, is) }

func (f *faults) announce(name, what string) {
	f.happened++
	f.print(f.d.screen.Palette().Yellow("fault: "+name) + ": " + what)
}

func (f *faults) conclude(ok bool, outcome, cost string) {
	p := f.d.screen.Palette()
	if outcome = p.Green(outcome); !ok {
		outcome = p.Red("not recovered")
	}
	f.print(outcome + ": " + cost)
}

func (f *faults) print(text string) {
	say(f.d.screen, "%s", text) //nolint:errcheck // the next change fails, too
}

// A fault that has begun continues after the end of the demo: the last comparison needs informers
// that have recovered.

func (f *faults) cut(ctx context.Context) {
	before := f.account()
	f.announce("connection cut", fmt.Sprintf("all %d watches break", len(before.informer)))
	f.d.server.CutConnections()
	cost, ok := f.await(context.WithoutCancel(ctx), before, "", rewatched)
	f.conclude(ok, fmt.Sprintf("resumed from RV %s after %s", before.version, since(before)), cost)
}

// expire breaks the watch of the pods, and drops the history from which it would resume.
func (f *faults) expire(ctx context.Context) {
	before, lasting := f.account(), context.WithoutCancel(ctx)
	f.announce("410 Gone",
		"a pod is deleted, and the server forgets the history that the watch of pods needs")
	match := apisim.Match{Verb: "watch", Resource: podType + "s", UserAgent: demoAgent}
	waiting := f.d.server.Inject(match, apisim.Delay(recoveryTimeout))
	defer waiting.Lift()
	f.d.server.CutConnections()
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
	err := f.deletePod(lasting) // the watch needs no history if nothing has changed
	if err == nil {
		err = f.forget(lasting)
	}
	if err != nil {
		f.conclude(false, "", err.Error())
		return
	}
	waiting.Lift()
	cost, ok := f.await(lasting, before, podType, relisted)
	f.conclude(ok, "listed again after "+since(before), cost)
}

func (f *faults) deletePod(ctx context.Context) error {
	resource := corev1.SchemeGroupVersion.WithResource(podType + "s")
	pods, _, err := f.d.server.List(ctx, resource, "")
	if err != nil || len(pods) == 0 {
		return err
	}
	pod := pods[len(pods)/2].(*corev1.Pod)
	_, err = f.d.server.Delete(ctx, resource, pod.Namespace, pod.Name)
	if apierrors.IsNotFound(err) {
		return nil // another client has deleted the pod
	}
	return err
}

// forget makes the server drop its history during a pause of all writes, once the informers of the
// other types have read it. A watch that lacks the newest event would end with 410, too.
func (f *faults) forget(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, recoveryTimeout)
	defer cancel()
	if err := f.d.writes.Acquire(ctx, allWrites); err != nil {
		return err
	}
	defer f.d.writes.Release(allWrites)
	for _, t := range f.d.types {
		if t.of.Singular == podType {
			continue
		}
		_, version, err := f.d.server.List(ctx, t.resource, "")
		if err == nil {
			err = t.waitFor(ctx, version)
		}
		if err != nil {
			return err
		}
	}
	f.d.server.Compact()
	return nil
}

// forbid takes the permission for a type from the informers for some time.
func (f *faults) forbid(ctx context.Context) {
	before, lasting := f.account(), context.WithoutCancel(ctx)
	f.announce("permission taken",
		fmt.Sprintf("the watch of %ss breaks, and the server forbids another", forbiddenType))
	forbidden := f.d.server.Inject(
		apisim.Match{Resource: forbiddenType + "s", UserAgent: demoAgent},
		apisim.Refuse(http.StatusForbidden, 0))
	defer forbidden.Lift()
	f.d.server.CutConnections()
	sleep(ctx, forbidding)
	forbidden.Lift()
	cost, ok := f.await(lasting, before, "", rewatched)
	f.conclude(ok, "watched again after "+since(before), cost)
}

// restore restores a backup of the server's storage.
func (f *faults) restore(ctx context.Context) {
	backup, then := f.d.server.Snapshot(), f.account()
	if err := f.deletePod(ctx); err != nil { // users may pause: then there is nothing to notice
		f.conclude(false, "", err.Error())
		return
	}
	if !sleep(ctx, backupAge) {
		return
	}
	// Clients cannot write to a server that is down. Until the informers have noticed the restore,
	// later writes would have versions that they know.
	if f.d.writes.Acquire(ctx, allWrites) != nil {
		return // the demo ends
	}
	defer f.d.writes.Release(allWrites)
	before, lasting := f.account(), context.WithoutCancel(ctx)
	controllers := f.d.fleet.Health()
	f.announce("restored backup", fmt.Sprintf("the server is down, then at RV %s instead of %s",
		then.version, before.version))
	f.d.server.SetAvailable(false)
	f.d.server.Rewind(backup)
	sleep(lasting, restoring)
	f.d.lag.Forget()
	f.d.server.SetAvailable(true)
	cost, ok := f.await(lasting, before, "", relisted)
	f.awaitControllers(lasting, controllers)
	f.conclude(ok, fmt.Sprintf("noticed after %v of outage", restoring), cost)
}

// awaitControllers waits until the informers of the cluster's controllers have listed again.
func (f *faults) awaitControllers(ctx context.Context, before []tidings.Health) {
	ctx, cancel := context.WithTimeout(ctx, recoveryTimeout)
	defer cancel()
	for i, was := range before {
		for !relisted(was, f.d.fleet.Health()[i]) && sleep(ctx, recoveryEvery) {
		}
	}
}

// fallSilent makes a watch silent after some events.
func (f *faults) fallSilent(ctx context.Context) {
	before, lasting := f.account(), context.WithoutCancel(ctx)
	f.announce("silent connection", "the watch of "+silentType+"s brings nothing any more")
	match := apisim.Match{Verb: "watch", Resource: silentType + "s", UserAgent: demoAgent, Times: 1}
	silence := f.d.server.Inject(match, apisim.Stall(silentFrom, 0))
	defer silence.Lift()
	f.d.server.CutConnections()
	cost, ok := f.await(lasting, before, "", rewatched)
	sleep(ctx, silentAfter)
	if before = f.account(); ok {
		cost, ok = f.await(ctx, before, silentType, rewatched)
	}
	if !ok && ctx.Err() != nil {
		f.print("the demo ends before the silence is noticed: the connection is cut")
		f.d.server.CutConnections()
		cost, ok = f.await(lasting, before, "", rewatched)
	}
	silent := time.Since(before.informer[silentType].LastEvent)
	f.conclude(ok, "closed and resumed after "+format.Short(silent), cost)
}

// since returns the time since an account, as text.
func since(a account) string { return format.Short(time.Since(a.at)) }
