package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings/apiserver"
	"github.com/tidings-go/tidings/e2e/internal/follow"
)

// namespaces are those that are written to. Some followers follow the first two alone.
var namespaces = []string{"a", "b", "c"}

// makeNamespaces creates the namespaces.
func makeNamespaces(ctx context.Context, config *rest.Config) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	for _, name := range namespaces {
		if _, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// truth is what the server answers now, which it may not have from a cache, checked
// against what etcd holds.
func truth(ctx context.Context, s *apiserver.Server) (follow.State, error) {
	client, err := kubernetes.NewForConfig(s.Config())
	if err != nil {
		return nil, err
	}
	list, err := client.CoreV1().ConfigMaps("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	state := follow.State{}
	for _, c := range list.Items {
		state[c.Namespace+"/"+c.Name] = string(c.UID) + "@" + c.ResourceVersion
	}
	return state, etcd(s, func(c *clientv3.Client) error {
		const prefix = "/registry/configmaps/"
		held, err := c.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly())
		if err != nil {
			return err
		}
		if len(held.Kvs) != len(state) {
			return fmt.Errorf("etcd holds %d config maps, the server lists %d", len(held.Kvs), len(state))
		}
		for _, kv := range held.Kvs {
			key := strings.TrimPrefix(string(kv.Key), prefix)
			if _, version, _ := strings.Cut(state[key], "@"); version != strconv.FormatInt(kv.ModRevision, 10) {
				return fmt.Errorf("etcd holds %s at revision %d, the server lists %q", key, kv.ModRevision, state[key])
			}
		}
		return nil
	})
}

// settle waits until every follower agrees with the truth, and fails the test if one
// does not, or was told what cannot be.
func settle(t *testing.T, s *apiserver.Server, all []*follow.Follower) {
	t.Helper()
	began := time.Now()
	defer func() { t.Logf("all agreed after %v", time.Since(began).Round(time.Millisecond)) }()
	var wrong []string
	err := eventually(t.Context(), patience, func(ctx context.Context) (bool, error) {
		is, err := truth(ctx, s)
		if err != nil {
			return false, err
		}
		wrong = nil
		for _, f := range all {
			differ := f.Check(is)
			for _, what := range differ {
				wrong = append(wrong, f.Name+": "+what)
			}
			if len(differ) > 0 {
				wrong = append(wrong, fmt.Sprintf("%s: health %+v", f.Name, f.Health()))
			}
		}
		return len(wrong) == 0, nil
	})
	if err != nil {
		t.Fatalf("%v:\n%s", err, strings.Join(wrong, "\n"))
	}
}

// followAll starts followers of every kind, which end before the server does.
func followAll(t *testing.T, config *rest.Config) []*follow.Follower {
	t.Helper()
	return following(t, func(ctx context.Context) ([]*follow.Follower, error) {
		return follow.All(ctx, config, namespaces[:2]...)
	})
}

// following has followers end before the server does.
func following(t *testing.T, start func(context.Context) ([]*follow.Follower, error)) []*follow.Follower {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	all, err := start(ctx)
	t.Cleanup(func() {
		stop()
		for _, f := range all {
			f.Stop()
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// churn is what writes to config maps, so many times a second and without regard for
// errors, until it is stopped.
type churn struct {
	client  kubernetes.Interface
	stop    context.CancelFunc
	running sync.WaitGroup

	made, refused, deletes atomic.Int64
}

// mapNames is how many config maps a namespace may have.
const mapNames = 100

// writers is how many writes may be under way.
const writers = 8

func startChurn(t *testing.T, config *rest.Config, perSecond int, seed uint64) *churn {
	t.Helper()
	config = rest.CopyConfig(config)
	config.Timeout = 5 * time.Second // a server that was killed may leave a write without an answer
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	c := &churn{client: client, stop: stop}
	for writer := range writers {
		c.running.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(writer)))
			ticker := time.NewTicker(time.Second * writers / time.Duration(perSecond))
			defer ticker.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-ticker.C:
					c.write(ctx, random)
				}
			}
		})
	}
	t.Cleanup(c.end)
	return c
}

// end stops the writing and returns when the last write has ended.
func (c *churn) end() {
	c.stop()
	c.running.Wait()
}

// write creates, changes or deletes a config map.
func (c *churn) write(ctx context.Context, random *rand.Rand) {
	maps := c.client.CoreV1().ConfigMaps(namespaces[random.IntN(len(namespaces))])
	obj := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("map-%d", random.IntN(mapNames))},
		Data:       map[string]string{"n": strconv.Itoa(random.Int())},
	}
	var err error
	if random.IntN(4) == 0 {
		if err = maps.Delete(ctx, obj.Name, metav1.DeleteOptions{}); err == nil {
			c.deletes.Add(1)
		}
	} else if _, err = maps.Update(ctx, obj, metav1.UpdateOptions{}); err != nil {
		_, err = maps.Create(ctx, obj, metav1.CreateOptions{})
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		c.refused.Add(1)
		return
	}
	c.made.Add(1)
}

// report logs what was survived.
func report(t *testing.T, c *churn, all []*follow.Follower) {
	t.Helper()
	t.Logf("%d writes, %d of them deletes; %d refused", c.made.Load(), c.deletes.Load(), c.refused.Load())
	for _, f := range all {
		events, deletes := f.Counts()
		t.Logf("%-26s told of %d events, %d of them deletes", f.Name, events, deletes)
	}
}
