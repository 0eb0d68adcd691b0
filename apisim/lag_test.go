package apisim

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
)

func TestLaggingReplica(t *testing.T) {
	inBothEncodings(t, Options{BookmarkInterval: time.Minute}, func(b *bench, client kubernetes.Interface) {
		old := b.create("a")
		fault := b.server.Inject(Match{Resource: "configmaps"}, Lag())
		fresh := b.relabel("a", "n=2")
		b.create("b")
		newest := b.version()
		maps := client.CoreV1().ConfigMaps("default")
		names := func(o metav1.ListOptions) string { return b.listOf(client, o) }
		if got := names(metav1.ListOptions{}); got != "[a b]@"+newest {
			b.Errorf("a list of the newest state: %s", got)
		}
		if got := names(at("0")); got != "[a]@"+old.ResourceVersion {
			b.Errorf("a list of any state: %s", got)
		}
		if got := names(at(old.ResourceVersion)); got != "[a]@"+old.ResourceVersion {
			b.Errorf("a list of what the replica has seen: %s", got)
		}
		if got := names(at(fresh.ResourceVersion)); got != string(metav1.StatusReasonTimeout) {
			b.Errorf("a list of what it has not seen: %s", got)
		}
		if got, err := maps.Get(b.ctx, "a", metav1.GetOptions{ResourceVersion: "0"}); err != nil || got.ResourceVersion != old.ResourceVersion {
			b.Errorf("get of any state: %v, %v", got, err)
		}
		if _, err := maps.Get(b.ctx, "b", metav1.GetOptions{ResourceVersion: "0"}); !apierrors.IsNotFound(err) {
			b.Errorf("get of what came later: %v", err)
		}
		if got, err := maps.Get(b.ctx, "a", metav1.GetOptions{}); err != nil || got.ResourceVersion != fresh.ResourceVersion {
			b.Errorf("get of the newest state: %v, %v", got, err)
		}
		yes := true
		streamed := metav1.ListOptions{SendInitialEvents: &yes, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, AllowWatchBookmarks: true}
		ofAny := streamed
		ofAny.ResourceVersion = "0"
		consistent := b.later(func() (apiwatch.Interface, error) { return maps.Watch(b.ctx, streamed) })
		initial := b.watchWith(client, ofAny)
		events := b.watchWith(client, metav1.ListOptions{ResourceVersion: old.ResourceVersion, AllowWatchBookmarks: true})
		future := b.watchWith(client, at(fresh.ResourceVersion))
		time.Sleep(61 * time.Second)
		b.want("a streamed list of any state", initial(), "ADDED a@"+old.ResourceVersion, "BOOKMARK @"+old.ResourceVersion+" end", "BOOKMARK @"+old.ResourceVersion)
		b.want("a watch", events(), "BOOKMARK @"+old.ResourceVersion)
		b.want("a watch of the future", future())
		b.want("a streamed list of the newest state", consistent(), "ERROR 504 Timeout", "END")
		fault.Lift()
		consistent = b.later(func() (apiwatch.Interface, error) { return maps.Watch(b.ctx, streamed) })
		b.want("a streamed list of any state, caught up", initial(), "MODIFIED a@"+fresh.ResourceVersion, "ADDED b@"+newest)
		b.want("a watch, caught up", events(), "MODIFIED a@"+fresh.ResourceVersion, "ADDED b@"+newest)
		b.want("a watch of the future, caught up", future(), "ADDED b@"+newest)
		b.want("a streamed list of the newest state, caught up", consistent(), "ADDED a@"+fresh.ResourceVersion, "ADDED b@"+newest, "BOOKMARK @"+newest+" end")
		if got := names(at("0")); got != "[a b]@"+newest {
			b.Errorf("a list of any state, caught up: %s", got)
		}
	})
}

func TestLaggingReplicaOfWhatIsForgotten(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		old := b.create("a")
		b.server.Inject(Match{}, Lag())
		b.relabel("a", "n=2")
		b.server.Compact()
		b.want("events", b.follow(at("0"))(), "ERROR 410 Expired", "END")
		if names, list, err := b.list(at("0")); err != nil || fmt.Sprint(names) != "[a]" || list.ResourceVersion != old.ResourceVersion {
			b.Errorf("list %v, %v", names, err)
		}
	})
}

// later opens a watch whose answer does not come at once.
func (b *bench) later(open func() (apiwatch.Interface, error)) func() []string {
	opened := make(chan func() []string, 1)
	go func() {
		w, err := open()
		if err != nil {
			b.Error(err)
			return
		}
		opened <- b.collect(w)
	}()
	var events func() []string
	return func() []string {
		synctest.Wait()
		if events == nil {
			select {
			case events = <-opened:
			default:
				return nil
			}
		}
		return events()
	}
}
