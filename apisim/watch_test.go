package apisim

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
)

func TestObjectsThatExpireTogetherHaveOneVersion(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		b.create("a")
		before := b.create("b").ResourceVersion
		events := b.follow(at(before))
		b.must(b.server.Expire(b.ctx, configMaps, "default", "a", "b"))
		gone := b.version()
		if gone == before {
			b.Fatal("the deletes have no version of their own")
		}
		next := b.create("c")
		b.want("events", events(), "DELETED a@"+gone, "DELETED b@"+gone, "ADDED c@"+next.ResourceVersion)
		b.want("events from the version before", b.follow(at(before))(), "DELETED a@"+gone, "DELETED b@"+gone, "ADDED c@"+next.ResourceVersion)
		b.want("events from their version", b.follow(at(gone))(), "ADDED c@"+next.ResourceVersion)
		if err := b.server.Expire(b.ctx, configMaps, "default", "c", "absent"); !apierrors.IsNotFound(err) {
			b.Errorf("expiring an object that is not there: %v", err)
		}
		if names, _, err := b.list(metav1.ListOptions{}); err != nil || len(names) != 1 {
			b.Errorf("after a refusal there are %v, %v, want c alone", names, err)
		}
	})
}

func TestBookmarksComeInTimeAndAtTheEnd(t *testing.T) {
	inBubble(t, Options{BookmarkInterval: 10 * time.Second}, func(b *bench) {
		a := b.create("a")
		timeout := int64(25)
		events := b.follow(metav1.ListOptions{ResourceVersion: a.ResourceVersion, AllowWatchBookmarks: true, TimeoutSeconds: &timeout})
		without := b.follow(metav1.ListOptions{ResourceVersion: a.ResourceVersion, TimeoutSeconds: &timeout})
		elsewhere, err := b.server.Create(b.ctx, nodeNamed("n"))
		b.must(err)
		newest := elsewhere.(metav1.Object).GetResourceVersion()
		time.Sleep(11 * time.Second)
		b.want("after 11 s", events(), "BOOKMARK @"+newest)
		time.Sleep(13 * time.Second)
		b.want("after 24 s", events(), "BOOKMARK @"+newest, "BOOKMARK @"+newest)
		time.Sleep(2 * time.Second)
		b.want("after 26 s", events(), "END")
		b.want("without bookmarks", without(), "END")
	})
}

func TestWatchOfAForgottenVersionIsExpired(t *testing.T) {
	faults := map[string]func(b *bench){
		"compaction":              func(b *bench) { b.server.Compact() },
		"restart without history": func(b *bench) { b.server.Restart(RestartOptions{}) },
		"more than the history holds": func(b *bench) {
			for range 30 {
				b.create("b")
				b.remove("b")
			}
		},
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			inBubble(t, Options{HistoryLimit: 20}, func(b *bench) {
				a := b.create("a")
				b.relabel("a", "n=2")
				fault(b)
				b.want("events", b.follow(at(a.ResourceVersion))(), "ERROR 410 Expired", "END")
				_, list, err := b.list(metav1.ListOptions{})
				b.must(err)
				events := b.follow(at(list.ResourceVersion))
				c := b.create("c")
				b.want("events from the newest version", events(), "ADDED c@"+c.ResourceVersion)
			})
		})
	}
}

func TestCompactionDoesNotEndAWatchThatKeepsUp(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		a := b.create("a")
		events := b.follow(at(a.ResourceVersion))
		synctest.Wait()
		b.server.Compact()
		changed := b.relabel("a", "n=2")
		b.want("events", events(), "MODIFIED a@"+changed.ResourceVersion)
	})
}

func TestRemovedResource(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		a := b.create("a")
		events := b.follow(at(a.ResourceVersion))
		synctest.Wait()
		b.server.RemoveResource(configMaps)
		b.want("events", events(), "END")
		if _, _, err := b.list(metav1.ListOptions{}); !isStatus(err, 404, metav1.StatusReasonNotFound) {
			b.Errorf("list: %v", err)
		}
		b.server.RestoreResource(configMaps)
		if names, _, err := b.list(metav1.ListOptions{}); err != nil || len(names) != 0 {
			b.Errorf("after it is back: %q, %v", names, err)
		}
		b.want("watch from before", b.follow(at(a.ResourceVersion))(), "ERROR 410 Expired", "END")

		// A watch that missed both would follow the new resource, and its client would keep
		// the objects of the old one.
		events = b.follow(at(b.create("b").ResourceVersion))
		synctest.Wait()
		b.server.RemoveResource(configMaps)
		b.server.RestoreResource(configMaps)
		if got := events(); len(got) == 2 {
			b.want("back before the watch has noticed", got, "ERROR 410 Expired", "END")
		} else {
			b.want("back at once", got, "END")
		}
	})
}

// TestWritesStraightAfterACut runs in real time: it writes while the client does not know yet
// that its connection is gone.
func TestWritesStraightAfterACut(t *testing.T) {
	server := Start(t)
	client := kubernetes.NewForConfigOrDie(server.Config())
	obj, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), configMap("a"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	cuts := map[string]func(){
		"CutConnections": server.CutConnections,
		"Restart":        func() { server.Restart(RestartOptions{KeepHistory: true}) },
		"SetAvailable": func() {
			server.SetAvailable(false)
			server.SetAvailable(true)
		},
		"Rewind": func() { server.Rewind(server.Snapshot()) },
	}
	for name, cut := range cuts {
		for range 300 {
			cut()
			obj, err = client.CoreV1().ConfigMaps("default").Update(t.Context(), obj, metav1.UpdateOptions{})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
}

// TestACutOfAll cuts a watch, and the connections that its client could use for the next one.
func TestACutOfAll(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		version := at(b.create("a").ResourceVersion)
		configMaps := b.typed.CoreV1().ConfigMaps("default")
		for range 300 {
			first, err := configMaps.Watch(b.ctx, version)
			b.must(err)
			b.list(metav1.ListOptions{}) //nolint:errcheck // it leaves an idle connection
			var second apiwatch.Interface
			go func() {
				for range first.ResultChan() { // until the cut
				}
				second, err = configMaps.Watch(b.ctx, version)
			}()
			synctest.Wait()
			b.server.CutConnections()
			synctest.Wait()
			b.must(err)
			b.want("a watch straight after the cut", b.collect(second)())
			b.server.CutConnections()
		}
	})
}

func TestWatchOfAPath(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		a := b.create("a")
		b.create("b")
		resp := b.do("GET", "/api/v1/namespaces/default/configmaps/a?watch=true&timeoutSeconds=10&resourceVersion="+a.ResourceVersion, "")
		b.relabel("b", "n=2")
		changed := b.relabel("a", "n=2")
		time.Sleep(11 * time.Second)
		text, err := io.ReadAll(resp.Body)
		if err != nil || strings.Count(string(text), "\n") != 1 || !strings.Contains(string(text), `"resourceVersion":"`+changed.ResourceVersion) {
			b.Errorf("it brought %s, %v", text, err)
		}
		all, err := b.typed.CoreV1().ConfigMaps("").Watch(b.ctx, at(changed.ResourceVersion))
		b.must(err)
		elsewhere := configMap("c")
		elsewhere.Namespace = "kube-system"
		here := b.follow(at(changed.ResourceVersion))
		b.seed(elsewhere)
		b.want("of all namespaces", b.collect(all)(), "ADDED c@"+b.version())
		b.want("of another", here())
	})
}

func TestWatchWithoutATimeoutEnds(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		a := b.create("a")
		events := b.follow(at(a.ResourceVersion))
		time.Sleep(minWatchTimeout - time.Second)
		b.want("before half an hour", events())
		time.Sleep(minWatchTimeout + 2*time.Second)
		b.want("after an hour", events(), "END")
	})
}

// TestFormsOfTheWatchParameter: as in Kubernetes, any value but "0" and "false" is a watch.
func TestFormsOfTheWatchParameter(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		for query, verb := range map[string]string{
			"watch": "watch", "watch=True": "watch", "watch=yes": "watch", "watch=1": "watch",
			"watch=0": "list", "watch=False": "list", "": "list",
		} {
			b.server.ForgetRequests()
			b.get("GET", mapsPath+"?timeoutSeconds=1&"+query, "")
			if log := b.server.Requests(); len(log) != 1 || log[0].Verb != verb {
				b.Errorf("%q is taken for %v, want %s", query, log, verb)
			}
		}
	})
}
