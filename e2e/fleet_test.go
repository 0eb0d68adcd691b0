package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apiserver"
	"github.com/tidings-go/tidings/e2e/internal/journal"
	"github.com/tidings-go/tidings/e2e/internal/proxy"
	"github.com/tidings-go/tidings/shard"
)

const (
	// teams is the number of namespaces with objects. Each has two ConfigMaps, and every 20th a
	// third one, whose calls are slow.
	teams   = 1000
	workers = 16 // of each member
	// clockError is the largest error of the clocks of members.
	clockError = 30 * time.Second
)

// fleet is a server with objects, and the replicas of a sharded controller, which are processes.
type fleet struct {
	*testing.T
	server  *apiserver.Server
	client  kubernetes.Interface
	program string
	by      tidings.SlotKey
	lease   time.Duration

	members []*member // that were started, in order
	running []*member // of these, the ones that are to run
	history *journal.History
	rate    float64 // of the changes, each second
	keys    []string
	stop    context.CancelFunc // ends the goroutines beside the replicas
	beside  sync.WaitGroup

	mu sync.Mutex // guards the keys, and the changes and applied writes of history, while others run
}

// member is a replica, whose requests pass a proxy of its own.
type member struct {
	*replica
	*journal.Process
	proxy *proxy.Proxy
}

// startFleet starts a server with objects, and begins to change them and to watch them.
func startFleet(
	t *testing.T, by tidings.SlotKey, lease time.Duration, arguments ...string,
) *fleet {
	t.Helper()
	f := &fleet{T: t, program: build(t, ".", "internal/member"), by: by, lease: lease,
		server:  newServer(t, arguments...),
		history: &journal.History{Lease: lease, Workers: workers, UIDs: map[string]string{}},
	}
	config := f.server.Config()
	config.QPS = -1
	var err error
	f.client, err = kubernetes.NewForConfig(config)
	f.must(err)
	version := f.fill()
	ctx, stop := context.WithCancel(t.Context())
	f.stop = stop
	t.Cleanup(func() {
		stop()
		f.beside.Wait()
	})
	f.beside.Go(func() { f.watch(ctx, version) })
	return f
}

func (f *fleet) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// fill creates the namespaces and the objects, and returns a version.
func (f *fleet) fill() (version string) {
	f.Helper()
	f.createNamespace("ops")
	numbers := make(chan int)
	var creating sync.WaitGroup
	for range writers {
		creating.Go(func() {
			for i := range numbers {
				f.fillTeam(i)
			}
		})
	}
	for i := range teams {
		numbers <- i
	}
	close(numbers)
	creating.Wait()
	list, err := f.client.CoreV1().ConfigMaps("").List(f.Context(), metav1.ListOptions{})
	f.must(err)
	if f.by == tidings.ByUID {
		for _, m := range list.Items { // those of the server too
			f.history.UIDs[m.Namespace+"/"+m.Name] = string(m.UID)
		}
	}
	slices.Sort(f.keys)
	return list.ResourceVersion
}

func (f *fleet) createNamespace(name string) {
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := f.client.CoreV1().Namespaces().Create(f.Context(), n, metav1.CreateOptions{}); err != nil {
		f.Error(err)
	}
}

// fillTeam creates a namespace and its objects.
func (f *fleet) fillTeam(i int) {
	namespace := fmt.Sprintf("team-%03d", i)
	f.createNamespace(namespace)
	names := []string{"c0", "c1"}
	if i%20 == 0 {
		names = append(names, "slow")
	}
	for _, name := range names {
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		if _, err := f.client.CoreV1().ConfigMaps(namespace).Create(f.Context(), m,
			metav1.CreateOptions{}); err != nil {
			f.Error(err)
		}
		f.mu.Lock()
		f.keys = append(f.keys, namespace+"/"+name)
		f.mu.Unlock()
	}
}

// change changes objects, rate times a second, until ctx ends.
func (f *fleet) change(ctx context.Context) {
	for writer := range writers {
		f.beside.Go(func() {
			random := rand.New(rand.NewPCG(*seed, uint64(writer)))
			ticker := time.NewTicker(time.Second * writers / rate)
			defer ticker.Stop()
			for n := writer; ; n += writers {
				select {
				case <-ctx.Done():
					return
				case <-ticker.C:
					f.changeOne(f.keys[random.IntN(len(f.keys))], n)
				}
			}
		})
	}
}

func (f *fleet) changeOne(key string, n int) {
	namespace, name := filepath.Dir(key), filepath.Base(key)
	patch := fmt.Appendf(nil, `{"data":{"asked":"%d"}}`, n)
	sent := journal.Now()
	got, err := f.client.CoreV1().ConfigMaps(namespace).Patch(f.Context(), name, types.MergePatchType,
		patch, metav1.PatchOptions{})
	answered := journal.Now()
	if err != nil {
		f.Errorf("change %s: %v", key, err)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.history.Changes = append(f.history.Changes, journal.Change{
		Key: key, Version: f.number(got.ResourceVersion), Sent: sent, Answered: answered,
	})
}

// changes returns the number of changes.
func (f *fleet) changes() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.history.Changes)
}

// number returns a version or a number in an annotation.
func (f *fleet) number(text string) uint64 {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		f.Error(err)
	}
	return n
}

// watch records the writes of the replicas, from a version on until ctx ends.
func (f *fleet) watch(ctx context.Context, version string) {
	seen := map[string]string{} // the last write by key
	for ctx.Err() == nil {
		w, err := f.client.CoreV1().ConfigMaps("").Watch(ctx, metav1.ListOptions{ResourceVersion: version})
		if err != nil {
			if ctx.Err() == nil {
				f.Error(err)
			}
			return
		}
		for event := range w.ResultChan() {
			m, ok := event.Object.(*corev1.ConfigMap)
			if !ok {
				if ctx.Err() == nil {
					f.Errorf("the watch has ended: %+v", event.Object)
				}
				return
			}
			version = m.ResourceVersion
			by, n := m.Annotations["by"], m.Annotations["write"]
			key := m.Namespace + "/" + m.Name
			if write := by + " " + n; by != "" && seen[key] != write {
				seen[key] = write
				f.applied(journal.Applied{Process: by, Number: f.number(n), Key: key, Version: f.number(version)})
			}
		}
	}
}

func (f *fleet) applied(a journal.Applied) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.history.Applied = append(f.history.Applied, a)
}

// join starts a replica.
func (f *fleet) join(generation string) *member {
	f.Helper()
	name := fmt.Sprintf("m%02d", len(f.members))
	p := startProxy(f.T, f.server)
	config := f.server.Config()
	config.Host = p.URL()
	path := filepath.Join(f.ArtifactDir(), name)
	clock := []time.Duration{0, clockError, -clockError}[len(f.members)%3]
	m := &member{proxy: p, Process: journal.NewProcess(name, path)}
	m.replica = startReplica(f.T, name, f.program, "-kubeconfig", kubeconfig(f.T, config), "-journal", path,
		"-name", name, "-generation", generation, "-by", string(f.by), "-lease", f.lease.String(), "-clock", clock.String(),
		"-workers", strconv.Itoa(workers))
	f.members, f.running = append(f.members, m), append(f.running, m)
	f.history.Processes = append(f.history.Processes, m.Process)
	return m
}

// leave stops a replica in order.
func (f *fleet) leave(m *member) {
	f.Helper()
	f.forget(m)
	m.stop()
}

func (f *fleet) forget(m *member) {
	f.running = slices.DeleteFunc(f.running, func(other *member) bool { return other == m })
}

// swallow is the kind of the fault of a member whose requests reach the server, and whose answers
// are lost.
const swallow = "swallow"

// fault begins a fault of a member, and returns a function that ends it.
func (m *member) fault(kind string, begin, end func()) (over func()) {
	n := len(m.Faults)
	m.Faults = append(m.Faults, journal.Fault{Kind: kind, From: journal.Now(), IsHeard: kind == swallow})
	begin()
	return func() {
		end()
		m.Faults[n].To = journal.Now()
	}
}

// awaitMember waits until a replica is a member of the group that slots are given to.
func (f *fleet) awaitMember(m *member) {
	f.Helper()
	f.must(eventually(f.Context(), patience, func(ctx context.Context) (bool, error) {
		r, err := shard.Read(ctx, f.server.Config(), "ops", "members")
		if errors.Is(err, shard.ErrNoGroup) {
			return false, nil
		}
		return slices.ContainsFunc(r.Members, func(h shard.MemberHealth) bool {
			return strings.HasPrefix(h.Identity, "members."+m.Process.Name+"-") && !h.Joining
		}), err
	}))
}

// await waits until members serve all slots, and each of the others so many at least.
func (f *fleet) await(least int, all ...*member) {
	f.Helper()
	var counts []string
	err := eventually(f.Context(), patience, func(context.Context) (bool, error) {
		var sum shard.Set
		counts = nil
		few := false
		for _, m := range all {
			if err := m.Read(); err != nil {
				return false, err
			}
			slots := m.Serving()
			counts = append(counts, fmt.Sprintf("%s %d", m.Process.Name, slots.Len()))
			sum = sum.Union(slots)
			few = few || slots.Len() < least
		}
		return sum.Len() == shard.Count && !few, nil
	})
	if err != nil {
		f.Fatalf("the members do not serve all slots, each %d at least: %v: %v", least, err, counts)
	}
}

// report checks that all slots are covered by the Leases (S5), and that no slot moves.
func (f *fleet) report() {
	f.Helper()
	err := eventually(f.Context(), patience, func(ctx context.Context) (bool, error) {
		r, err := shard.Read(ctx, f.server.Config(), "ops", "members")
		if err == nil && (r.Covered < 1 || r.Moving > 0) {
			err = fmt.Errorf("covered: %v, nobody has %q, not ready are %q; %d slots move: %q", r.Covered, r.Nobody, r.NotReady,
				r.Moving, r.Problems)
		}
		return err == nil, err
	})
	f.must(err)
}

// settle waits until all objects are as the replicas are to make them.
func (f *fleet) settle() {
	f.Helper()
	err := eventually(f.Context(), patience, func(ctx context.Context) (bool, error) {
		list, err := f.client.CoreV1().ConfigMaps("").List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		for _, m := range list.Items {
			if m.Annotations["seen"] != m.Data["asked"] {
				return false, fmt.Errorf("%s/%s has %q, want %q", m.Namespace, m.Name, m.Annotations["seen"],
					m.Data["asked"])
			}
		}
		return true, nil
	})
	f.must(err)
}
