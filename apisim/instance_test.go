package apisim

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// clientOf returns a client of an instance or a balancer.
func (b *bench) clientOf(config *rest.Config) kubernetes.Interface {
	b.Helper()
	client, err := kubernetes.NewForConfig(config)
	b.must(err)
	return client
}

// listOf describes a list of a server.
func (b *bench) listOf(client kubernetes.Interface, o metav1.ListOptions) string {
	list, err := client.CoreV1().ConfigMaps("default").List(b.ctx, o)
	if err != nil {
		return fmt.Sprint(apierrors.ReasonForError(err))
	}
	var names []string
	for _, item := range list.Items {
		names = append(names, item.Name)
	}
	return fmt.Sprint(names, "@", list.ResourceVersion)
}

func (b *bench) wantList(what, got string, names ...string) {
	b.Helper()
	version := names[len(names)-1]
	if want := fmt.Sprint(names[:len(names)-1], "@", version); got != want {
		b.Errorf("%s: %s, want %s", what, got, want)
	}
}

// TestInstanceLags reads from an instance ten seconds behind the storage, and from one that stands
// still.
func TestInstanceLags(t *testing.T) {
	inBubble(t, Options{BookmarkInterval: time.Minute}, func(b *bench) {
		old := b.create("a").ResourceVersion
		late, frozen := b.server.AddInstance(), b.server.AddInstance()
		late.SetLag(10 * time.Second)
		frozen.SetLag(Frozen)
		ofLate, ofFrozen := b.clientOf(late.Config()), b.clientOf(frozen.Config())
		began := b.watchWith(ofLate, metav1.ListOptions{ResourceVersion: old, AllowWatchBookmarks: true})
		ahead := b.create("b").ResourceVersion
		future := b.watchWith(ofFrozen, metav1.ListOptions{ResourceVersion: ahead, AllowWatchBookmarks: true})
		time.Sleep(9 * time.Second)
		b.want("a watch before the lag is over", began())
		for name, client := range map[string]kubernetes.Interface{"late": ofLate, "frozen": ofFrozen} {
			b.wantList(name+", any state", b.listOf(client, at("0")), "a", old)
			b.wantList(name+", the newest state", b.listOf(client, at("")), "a", "b", ahead)
		}
		b.wantList("a version that comes in time", b.listOf(ofLate, at(ahead)), "a", "b", ahead)
		b.want("a watch after the lag", began(), "ADDED b@"+ahead)
		last := b.create("c").ResourceVersion
		if got := b.listOf(ofFrozen, at(ahead)); got != string(metav1.StatusReasonTimeout) {
			b.Errorf("a version that does not come: %s", got)
		}
		time.Sleep(2 * time.Minute)
		b.want("a watch that follows", began(), "ADDED c@"+last, "BOOKMARK @"+last, "BOOKMARK @"+last)
		b.want("a watch from the future", future())
		frozen.SetLag(0)
		b.want("a watch that has caught up", future(), "ADDED c@"+last)
		b.wantList("an instance that has caught up", b.listOf(ofFrozen, at("0")), "a", "b", "c", last)
	})
}

// TestInstanceStreamsTheNewestState asks an instance that lags for a consistent streamed list.
func TestInstanceStreamsTheNewestState(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		r := b.server.AddInstance()
		client := b.clientOf(r.Config())
		streamed := metav1.ListOptions{
			SendInitialEvents: new(true), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
			AllowWatchBookmarks: true,
		}
		for lag, want := range map[time.Duration]string{2 * time.Second: "", Frozen: "ERROR 504 Timeout"} {
			r.SetLag(0)
			r.SetLag(lag)
			version := b.create(fmt.Sprint("at-", lag)).ResourceVersion
			list := b.later(func() (apiwatch.Interface, error) {
				return client.CoreV1().ConfigMaps("default").Watch(b.ctx, streamed)
			})
			time.Sleep(futureWait + time.Second)
			got := list()
			if want != "" && (len(got) == 0 || got[0] != want) {
				b.Errorf("with a lag of %v: %q", lag, got)
			}
			if end := "BOOKMARK @" + version + " end"; want == "" && (len(got) == 0 || got[len(got)-1] != end) {
				b.Errorf("with a lag of %v: %q, want the end %q", lag, got, end)
			}
		}
	})
}

// TestInstanceRestarts kills an instance and starts it again: it has no events from before.
func TestInstanceRestarts(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		r, other := b.server.AddInstance(), b.server.AddInstance()
		client := b.clientOf(r.Config())
		old := b.create("a").ResourceVersion
		cut := b.watchWith(client, at(old))
		running := b.watchWith(b.clientOf(other.Config()), at(old))
		r.SetAvailable(false)
		b.want("a watch of a killed instance", cut(), "END")
		if _, err := client.CoreV1().ConfigMaps("default").List(b.ctx, at("0")); err == nil {
			b.Error("a killed instance answers")
		}
		now := b.create("b").ResourceVersion
		b.want("a watch of another one", running(), "ADDED b@"+now)
		r.SetAvailable(true)
		b.wantList("an instance that has started", b.listOf(client, at("0")), "a", "b", now)
		b.want("a watch from before", b.watchWith(client, at(old))(), "ERROR 410 Expired", "END")
		b.want("a watch from now", b.watchWith(client, at(now))())
		b.want("a watch from before of another one",
			b.watchWith(b.clientOf(other.Config()), at(old))(), "ADDED b@"+now)
	})
}

// TestInstanceStandsStill pauses an instance with a watch, and requests meanwhile.
func TestInstanceStandsStill(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		r := b.server.AddInstance()
		client := b.clientOf(r.Config())
		events := b.watchWith(client, at(b.create("a").ResourceVersion))
		r.SetPaused(true)
		r.SetPaused(true)
		version := b.create("b").ResourceVersion
		limited, stop := context.WithTimeout(b.ctx, time.Minute)
		defer stop()
		if _, err := client.CoreV1().ConfigMaps("default").List(limited, at("")); limited.Err() == nil {
			b.Errorf("it answers: %v", err)
		}
		listed := make(chan string)
		go func() { listed <- b.listOf(client, at("")) }()
		synctest.Wait()
		b.want("a watch", events())
		r.SetPaused(false)
		b.want("the watch", events(), "ADDED b@"+version)
		b.wantList("the list", <-listed, "a", "b", version)
		for n := range 20 {
			version = b.relabel("a", fmt.Sprint("before=", n)).ResourceVersion
			b.want("a watch before", events(), "MODIFIED a@"+version)
			r.SetPaused(true)
			b.relabel("a", fmt.Sprint("paused=", n))
			synctest.Wait()
			r.CutConnections()
			b.want("a watch that is cut", events(), "END")
			r.SetPaused(false)
			events = b.watchWith(client, at(b.version()))
			synctest.Wait()
		}
		r.SetPaused(true) // Close ends it
	})
}

// TestInstanceOfAnotherHistory rewinds the storage under an instance that lags, and makes the
// storage drop events that the instance has not read.
func TestInstanceOfAnotherHistory(t *testing.T) {
	inBubble(t, Options{HistoryLimit: 10}, func(b *bench) {
		first := b.create("a").ResourceVersion
		backup := b.server.Snapshot()
		r := b.server.AddInstance()
		r.SetLag(Frozen)
		client := b.clientOf(r.Config())
		b.create("b")
		b.wantList("before the rewind", b.listOf(client, at("0")), "a", first)
		b.server.Rewind(backup)
		b.wantList("after the rewind", b.listOf(client, at("0")), "a", first)
		for n := range 30 {
			b.relabel("a", fmt.Sprint("n=", n))
		}
		list, err := client.CoreV1().ConfigMaps("default").List(b.ctx, at("0"))
		b.must(err)
		if list.ResourceVersion == first || len(list.Items) != 1 {
			b.Errorf("what the storage has forgotten is still served: %s", b.listOf(client, at("0")))
		}
	})
}

// TestBalance sends requests to any of three instances, as the seed decides.
func TestBalance(t *testing.T) {
	answered := func(seed uint64) (order string) {
		inBubble(t, Options{Seed: seed}, func(b *bench) {
			var instances []*Instance
			versions := map[string]int{}
			for n := range 3 {
				versions[b.create(fmt.Sprint("map-", n)).ResourceVersion] = n
				r := b.server.AddInstance()
				r.SetLag(Frozen)
				instances = append(instances, r)
			}
			client := b.clientOf(b.server.Balance(instances...))
			ask := func() int {
				list, err := client.CoreV1().ConfigMaps("default").List(b.ctx, at("0"))
				b.must(err)
				return versions[list.ResourceVersion]
			}
			seen := map[int]bool{}
			for range 20 {
				n := ask()
				seen[n] = true
				order += fmt.Sprint(n)
			}
			if len(seen) != 3 {
				b.Errorf("of three instances, %d were asked", len(seen))
			}
			instances[0].SetAvailable(false)
			instances[1].SetAvailable(false)
			for range 10 {
				if n := ask(); n != 2 {
					b.Errorf("instance %d has answered, which is down", n)
				}
			}
			b.server.SetAvailable(false)
			if _, err := client.CoreV1().ConfigMaps("default").List(b.ctx, at("0")); err == nil {
				b.Error("an instance answers without the storage")
			}
			b.server.SetAvailable(true)
		})
		return order
	}
	if one, again, other := answered(1), answered(1), answered(2); one != again || one == other {
		t.Errorf("seed 1 gives %s and %s, seed 2 %s", one, again, other)
	}
}

// TestInstanceListens reads over TCP.
func TestInstanceListens(t *testing.T) {
	server := Start(t)
	r := server.AddInstance()
	url, err := r.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(&rest.Config{Host: url})
	if err != nil {
		t.Fatal(err)
	}
	r.SetLag(Frozen)
	if _, err := Create(t.Context(), server, configMap("a")); err != nil {
		t.Fatal(err)
	}
	for version, want := range map[string]int{"0": 0, "": 1} {
		list, err := client.CoreV1().ConfigMaps("default").List(t.Context(), at(version))
		if err != nil || len(list.Items) != want {
			t.Errorf("a list of version %q has %d items: %v", version, len(list.Items), err)
		}
	}
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := server.AddInstance().Listen("127.0.0.1:0"); err == nil {
		t.Error("an instance of a closed server listens")
	}
}
