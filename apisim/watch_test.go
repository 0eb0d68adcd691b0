package apisim

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
)

func TestWatchFromAVersionBringsWhatFollows(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		first := b.create("a", "n=1")
		events := b.follow(at(first.ResourceVersion))
		second := b.relabel("a", "n=2")
		other := b.create("b")
		gone := b.remove("a")
		b.want("events", events(), "MODIFIED a@"+second.ResourceVersion, "ADDED b@"+other.ResourceVersion, "DELETED a@"+gone.ResourceVersion)
		if gone.ResourceVersion == second.ResourceVersion {
			b.Error("the delete has no version of its own")
		}
	})
}

func TestObjectsThatExpireTogetherHaveOneVersion(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		b.create("a")
		before := b.create("b").ResourceVersion
		events := b.follow(at(before))
		if err := b.server.Expire(b.ctx, configMaps, "default", "a", "b"); err != nil {
			b.Fatal(err)
		}
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

func TestWatchWithoutAVersionBeginsWithWhatThereIs(t *testing.T) {
	for _, version := range []string{"", "0"} {
		inBubble(t, Options{}, func(b *bench) {
			a := b.create("a")
			events := b.follow(at(version))
			b.want("events", events(), "ADDED a@"+a.ResourceVersion)
		})
	}
}

func TestWatchOfASelectionSeesObjectsComeAndGo(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		a := b.create("a", "app=web")
		events := b.follow(metav1.ListOptions{LabelSelector: "app=web", ResourceVersion: a.ResourceVersion})
		left := b.relabel("a", "app=api")
		b.relabel("a", "app=db")
		back := b.relabel("a", "app=web", "n=1")
		changed := b.relabel("a", "app=web", "n=2")
		b.create("other")
		gone := b.remove("a")
		b.want("events", events(), "DELETED a@"+left.ResourceVersion, "ADDED a@"+back.ResourceVersion, "MODIFIED a@"+changed.ResourceVersion, "DELETED a@"+gone.ResourceVersion)
	})
}

func TestWatchOfOneName(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		a := b.create("a")
		b.create("b")
		b.want("events", b.follow(metav1.ListOptions{FieldSelector: "metadata.name=a"})(), "ADDED a@"+a.ResourceVersion)
	})
}

func TestBookmarksComeInTimeAndAtTheEnd(t *testing.T) {
	inBubble(t, Options{BookmarkInterval: 10 * time.Second}, func(b *bench) {
		a := b.create("a")
		timeout := int64(25)
		events := b.follow(metav1.ListOptions{ResourceVersion: a.ResourceVersion, AllowWatchBookmarks: true, TimeoutSeconds: &timeout})
		without := b.follow(metav1.ListOptions{ResourceVersion: a.ResourceVersion, TimeoutSeconds: &timeout})
		elsewhere, err := b.server.Create(b.ctx, nodeNamed("n"))
		if err != nil {
			b.Fatal(err)
		}
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

func TestWatchFromTheFutureWaitsForIt(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		a := b.create("a") // version 6, after the namespaces
		events := b.follow(at("8"))
		b.relabel("a", "n=1")
		b.relabel("a", "n=2")
		third := b.relabel("a", "n=3")
		if a.ResourceVersion != "6" {
			b.Fatalf("the first object has version %s", a.ResourceVersion)
		}
		b.want("events", events(), "MODIFIED a@"+third.ResourceVersion)
	})
}

func TestStreamedList(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		a, c := b.create("a"), b.create("c")
		yes := true
		events := b.follow(metav1.ListOptions{SendInitialEvents: &yes, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, AllowWatchBookmarks: true})
		b.want("list", events(), "ADDED a@"+a.ResourceVersion, "ADDED c@"+c.ResourceVersion, "BOOKMARK @"+c.ResourceVersion+" end")
		later := b.create("b")
		b.want("watch", events(), "ADDED b@"+later.ResourceVersion)

		_, err := b.typed.CoreV1().ConfigMaps("default").Watch(b.ctx, metav1.ListOptions{SendInitialEvents: &yes})
		if !isStatus(err, 422, metav1.StatusReasonInvalid) {
			b.Errorf("without resourceVersionMatch: %v", err)
		}
		b.server.RefuseStreamedLists(true)
		_, err = b.typed.CoreV1().ConfigMaps("default").Watch(b.ctx, metav1.ListOptions{SendInitialEvents: &yes, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, AllowWatchBookmarks: true})
		if !isStatus(err, 422, metav1.StatusReasonInvalid) {
			b.Errorf("of a server without the feature: %v", err)
		}
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
				if err != nil {
					b.Fatal(err)
				}
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

func TestRestartWithHistoryLosesNothing(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		a := b.create("a")
		events := b.follow(at(a.ResourceVersion))
		synctest.Wait()
		b.server.Restart(RestartOptions{KeepHistory: true, Down: time.Second})
		changed := b.relabel("a", "n=2")
		if got := events(); len(got) == 0 || got[len(got)-1] != "END" {
			b.Errorf("the watch goes on: %q", got)
		}
		if _, _, err := b.list(metav1.ListOptions{}); err == nil {
			b.Error("the server answers while it is down")
		}
		time.Sleep(2 * time.Second)
		b.want("events", b.follow(at(a.ResourceVersion))(), "MODIFIED a@"+changed.ResourceVersion)
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
	})
}

// A watch that has not noticed that its resource was gone would follow another one, and
// its client would keep the objects of the first.
func TestRemovedResourceThatIsBackAtOnce(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		a := b.create("a")
		events := b.follow(at(a.ResourceVersion))
		synctest.Wait()
		b.server.RemoveResource(configMaps)
		b.server.RestoreResource(configMaps)
		b.want("events", events(), "ERROR 410 Expired", "END")
	})
}

func TestEveryFormOfEvents(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		a := b.create("a", "n=1")
		o := at(a.ResourceVersion)
		inProtobuf, err := kubernetes.NewForConfig(config(b.server, "application/vnd.kubernetes.protobuf"))
		if err != nil {
			b.Fatal(err)
		}
		asMaps, err := dynamic.NewForConfig(config(b.server, ""))
		if err != nil {
			b.Fatal(err)
		}
		asMetadata, err := metadata.NewForConfig(config(b.server, ""))
		if err != nil {
			b.Fatal(err)
		}
		protobufWatch, err := inProtobuf.CoreV1().ConfigMaps("default").Watch(b.ctx, o)
		if err != nil {
			b.Fatal(err)
		}
		mapsWatch, err := asMaps.Resource(configMaps).Namespace("default").Watch(b.ctx, o)
		if err != nil {
			b.Fatal(err)
		}
		metadataWatch, err := asMetadata.Resource(configMaps).Namespace("default").Watch(b.ctx, o)
		if err != nil {
			b.Fatal(err)
		}
		forms := map[string]func() []string{
			"json": b.follow(o), "protobuf": b.collect(protobufWatch), "maps": b.collect(mapsWatch), "metadata": b.collect(metadataWatch),
		}
		changed := b.relabel("a", "n=2")
		gone := b.remove("a")
		for name, events := range forms {
			b.want(name, events(), "MODIFIED a@"+changed.ResourceVersion, "DELETED a@"+gone.ResourceVersion)
		}
	})
}

func TestCutConnectionsEndWatches(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		a := b.create("a")
		events := b.follow(at(a.ResourceVersion))
		synctest.Wait()
		b.server.CutConnections()
		if got := events(); len(got) == 0 || got[len(got)-1] != "END" {
			b.Errorf("the watch goes on: %q", got)
		}
		if _, _, err := b.list(metav1.ListOptions{}); err != nil {
			b.Errorf("a new connection: %v", err)
		}
		b.server.SetAvailable(false)
		if _, _, err := b.list(metav1.ListOptions{}); err == nil {
			b.Error("an unavailable server answers")
		}
		b.server.SetAvailable(true)
		if _, _, err := b.list(metav1.ListOptions{}); err != nil {
			b.Errorf("an available server: %v", err)
		}
	})
}

// TestWritesStraightAfterACut is not in a bubble: what it is about are the moments in which
// the client does not know yet that its connection is gone.
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
		if err != nil {
			b.Fatal(err)
		}
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
