package controllers

import (
	"context"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	callTime = 10 * time.Millisecond
	// streamTime is the duration of the changes.
	streamTime = 30 * time.Second
	cold       = 100 // objects that do not change
	hot        = 20  // objects that change all the time

	// initialWait is the bound of C4, in seconds, for a key of the initial list: two steps of
	// ten seconds, the keys that were queued before, and one running call.
	initialWait = 20 + float64(cold+hot+1)*0.01
	// othersWait is the bound of C4, in seconds, for a flow with one key: a call of each flow,
	// and one running call.
	others     = 49
	othersWait = float64(others+1+1) * 0.01
)

// longest is the longest wait of a key.
type longest struct {
	mu    sync.Mutex // guards the rest
	since map[string]time.Time
	least map[string]int // the version that a call has to see
	seen  map[string]int // the last version that a call has seen
	most  time.Duration
}

func newLongest() *longest {
	return &longest{since: map[string]time.Time{}, least: map[string]int{}, seen: map[string]int{}}
}

// wants begins the wait of a key for a call that sees a version, unless it waits already, or a call
// was faster.
func (l *longest) wants(key string, version int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, waits := l.since[key]
	if seen, ok := l.seen[key]; !waits && (!ok || seen < version) {
		l.since[key], l.least[key] = time.Now(), version
	}
}

// called ends the wait of a key.
func (l *longest) called(key string, version int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen[key] = version
	if since, ok := l.since[key]; ok && version >= l.least[key] {
		l.most = max(l.most, time.Since(since))
		delete(l.since, key)
	}
}

// seconds returns the longest wait. A key that still waits counts as if it were called now.
func (l *longest) seconds() float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	most := l.most
	for _, since := range l.since {
		most = max(most, time.Since(since))
	}
	return most.Seconds()
}

// busy is a program whose calls take callTime.
func busy(workers int, l *longest) program {
	return program{name: "busy", workers: workers, call: func(
		_ context.Context, key string, d *appsv1.Deployment, _ client,
	) (time.Duration, error) {
		if d != nil {
			l.called(key, version(d))
		}
		time.Sleep(callTime)
		return 0, nil
	}}
}

// touch changes an object.
func touch(d *appsv1.Deployment) {
	d.Annotations = map[string]string{"changed": time.Now().String()}
}

// waitOfInitialList: 20 of 120 objects change twice as often as one worker can follow. It
// returns the longest wait of one of the others for its first call; it is streamTime or more if
// the changes end before.
func waitOfInitialList(w *world, s stack) float64 {
	waits := newLongest()
	for i := range cold + hot {
		w.create(deployment(opsNamespace, fmt.Sprintf("d%03d", i)))
	}
	for i := range cold {
		waits.wants(fmt.Sprintf("%s/d%03d", opsNamespace, hot+i), 0)
	}
	s.start(w, busy(1, waits))
	for i := range int(streamTime / (callTime / 2)) {
		time.Sleep(callTime / 2)
		w.change(opsNamespace, fmt.Sprintf("d%03d", i%hot), touch)
	}
	return waits.seconds()
}

// waitOfOthers: one namespace makes 99 % of the changes, more than so many workers can follow. It
// returns the longest wait of a changed key of another namespace.
func waitOfOthers(workers int) func(w *world, s stack) float64 {
	return func(w *world, s stack) float64 { return waitBesideNoise(w, s, workers) }
}

func waitBesideNoise(w *world, s stack, workers int) float64 {
	const noisy = 500
	waits := newLongest()
	for i := range noisy {
		w.create(deployment(opsNamespace, fmt.Sprintf("d%03d", i)))
	}
	for i := range others {
		namespace := fmt.Sprintf("n%02d", i)
		w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
		w.create(deployment(namespace, "d"))
	}
	s.start(w, busy(workers, waits))
	time.Sleep(10 * time.Second) // the initial list is called
	for i := range 5_000 {
		time.Sleep(3_970 * time.Microsecond)
		if i%100 != 99 {
			w.change(opsNamespace, fmt.Sprintf("d%03d", i%noisy), touch)
			continue
		}
		d := w.change(fmt.Sprintf("n%02d", i/100%others), "d", touch)
		waits.wants(keyOf(d), version(d))
	}
	return waits.seconds()
}
