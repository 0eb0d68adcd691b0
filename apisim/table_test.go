package apisim

import (
	"bufio"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func (b *bench) seed(objects ...runtime.Object) {
	b.Helper()
	for _, obj := range objects {
		if _, err := b.server.Create(b.ctx, obj); err != nil {
			b.Fatal(err)
		}
	}
}

func TestTableOfEveryResourceHasNameAndAge(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		b.create("a")
		time.Sleep(90 * time.Second)
		b.want("config maps", b.rows("/api/v1/configmaps"), "Name Age", "a 90s")
		b.want("one", b.rows("/api/v1/namespaces/default/configmaps/a"), "Name Age", "a 90s")
		b.want("of an empty list", b.rows("/api/v1/secrets"), "Name Age")
		b.want("as kubectl asks", b.rows("/api/v1/configmaps", "application/json;as=Table;v=v1beta1;g=meta.k8s.io"), "Name Age", "a 90s")
	})
}

func pod(name string, change func(p *corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	p.Spec.Containers = []corev1.Container{{Name: "a"}, {Name: "b"}}
	p.Status.Phase = corev1.PodRunning
	change(p)
	return p
}

func TestTableOfPods(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	terminated := func(code int32, reason string) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason}}
	}
	waiting := func(reason string) corev1.ContainerState {
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}
	}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	inits := func(p *corev1.Pod, states ...corev1.ContainerState) {
		for i, state := range states {
			name := string(rune('i' + i))
			p.Spec.InitContainers = append(p.Spec.InitContainers, corev1.Container{Name: name})
			p.Status.InitContainerStatuses = append(p.Status.InitContainerStatuses, corev1.ContainerStatus{Name: name, State: state})
		}
	}
	containers := func(p *corev1.Pod, statuses ...corev1.ContainerStatus) { p.Status.ContainerStatuses = statuses }
	pods := []struct {
		want   string
		change func(p *corev1.Pod)
	}{
		{"0/2 Pending 0", func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }},
		{"2/2 Running 3 (10s ago)", func(p *corev1.Pod) {
			last := terminated(1, "Error")
			last.Terminated.FinishedAt = metav1.NewTime(time.Now().Add(-10 * time.Second))
			containers(p, corev1.ContainerStatus{Ready: true, State: running, RestartCount: 3, LastTerminationState: last}, corev1.ContainerStatus{Ready: true, State: running})
		}},
		{"0/2 Evicted 0", func(p *corev1.Pod) { p.Status.Phase, p.Status.Reason = corev1.PodFailed, "Evicted" }},
		{"0/2 SchedulingGated 0", func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Reason: corev1.PodReasonSchedulingGated}}
		}},
		{"0/2 CrashLoopBackOff 2", func(p *corev1.Pod) {
			containers(p, corev1.ContainerStatus{State: waiting("CrashLoopBackOff"), RestartCount: 2})
		}},
		{"0/2 OOMKilled 0", func(p *corev1.Pod) { containers(p, corev1.ContainerStatus{State: terminated(137, "OOMKilled")}) }},
		{"0/2 ExitCode:7 0", func(p *corev1.Pod) { containers(p, corev1.ContainerStatus{State: terminated(7, "")}) }},
		{"0/2 Signal:9 0", func(p *corev1.Pod) {
			state := terminated(137, "")
			state.Terminated.Signal = 9
			containers(p, corev1.ContainerStatus{State: state})
		}},
		{"1/2 NotReady 0", func(p *corev1.Pod) {
			containers(p, corev1.ContainerStatus{State: terminated(0, "Completed")}, corev1.ContainerStatus{Ready: true, State: running})
		}},
		{"1/2 Running 0", func(p *corev1.Pod) {
			containers(p, corev1.ContainerStatus{State: terminated(0, "Completed")}, corev1.ContainerStatus{Ready: true, State: running})
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		}},
		{"0/2 Init:1/2 0", func(p *corev1.Pod) { inits(p, terminated(0, ""), running) }},
		{"0/2 Init:ImagePullBackOff 0", func(p *corev1.Pod) { inits(p, waiting("ImagePullBackOff")) }},
		{"0/2 Init:Error 0", func(p *corev1.Pod) { inits(p, terminated(1, "Error")) }},
		{"1/3 Running 1", func(p *corev1.Pod) {
			inits(p, running)
			p.Spec.InitContainers[0].RestartPolicy = &always
			p.Status.InitContainerStatuses[0].Started, p.Status.InitContainerStatuses[0].Ready, p.Status.InitContainerStatuses[0].RestartCount = new(true), true, 1
		}},
	}
	for _, test := range pods {
		t.Run(test.want, func(t *testing.T) {
			inBubble(t, Options{}, func(b *bench) {
				b.seed(pod("p", test.change))
				rows := b.rows("/api/v1/pods")
				if want := "p " + test.want + " 0s <none> <none> <none> <none>"; len(rows) != 2 || rows[1] != want {
					b.Errorf("got %q, want %q", rows, want)
				}
			})
		})
	}
}

func TestTableOfADeletedPod(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		b.seed(pod("p", func(p *corev1.Pod) {
			p.Finalizers = []string{"example.com/one"}
			p.Spec.NodeName, p.Status.PodIP, p.Status.NominatedNodeName = "n", "10.0.0.1", "m"
			p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "x"}, {ConditionType: "y"}}
			p.Status.Conditions = []corev1.PodCondition{{Type: "y", Status: corev1.ConditionTrue}}
		}))
		if err := b.typed.CoreV1().Pods("default").Delete(b.ctx, "p", metav1.DeleteOptions{}); err != nil {
			b.Fatal(err)
		}
		want := "Name Ready Status Restarts Age IP/1 Node/1 Nominated Node/1 Readiness Gates/1"
		b.want("pod", b.rows("/api/v1/pods"), want, "p 0/2 Terminating 0 0s 10.0.0.1 n m 1/2")
	})
}

func TestTableOfDeploymentsAndNodes(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		b.deployment("web", "a", "b")
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "x"}}
		d.Spec.Replicas, d.Spec.Selector = new(int32(3)), &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}}
		d.Status = appsv1.DeploymentStatus{ReadyReplicas: 2, UpdatedReplicas: 3, AvailableReplicas: 1}
		node := nodeNamed("n")
		node.Labels = map[string]string{"node-role.kubernetes.io/worker": "", "kubernetes.io/role": "edge"}
		node.Spec.Unschedulable = true
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.2"}}
		node.Status.NodeInfo.KubeletVersion, node.Status.NodeInfo.OSImage = "v1.37.1", "Linux"
		down := nodeNamed("o")
		down.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse}}
		b.seed(d, node, down, nodeNamed("p"))
		b.want("deployments", b.rows("/apis/apps/v1/deployments"),
			"Name Ready Up-to-date Available Age Containers/1 Images/1 Selector/1", "web 0/1 0 0 0s a,b a:1,b:1 <none>", "x 2/3 3 1 0s   app=x")
		b.want("nodes", b.rows("/api/v1/nodes"),
			"Name Status Roles Age Version Internal-IP/1 External-IP/1 OS-Image/1 Kernel-Version/1 Container-Runtime/1",
			"n Ready,SchedulingDisabled edge,worker 0s v1.37.1 10.0.0.2 <none> Linux <unknown> <unknown>",
			"o NotReady <none> 0s  <none> <none> <unknown> <unknown> <unknown>",
			"p Unknown <none> 0s  <none> <none> <unknown> <unknown> <unknown>")
	})
}

func TestWhatTheRowsOfATableInclude(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		b.create("a", "x=y")
		const accept = "application/json;as=Table;v=v1;g=meta.k8s.io"
		for include, says := range map[string]string{"": `"kind":"PartialObjectMetadata"`, "?includeObject=Object": `"kind":"ConfigMap"`, "?includeObject=None": `"object":null`} {
			code, text := b.get("GET", "/api/v1/configmaps"+include, "", "Accept", accept)
			if code != 200 || !strings.Contains(text, says) || !strings.Contains(text, `"resourceVersion":"6"`) {
				b.Errorf("%q: %d %s, want %s", include, code, text, says)
			}
		}
		if code, text := b.get("GET", "/api/v1/configmaps?includeObject=All", "", "Accept", accept); code != 400 {
			b.Errorf("%d %s", code, text)
		}
		if code, text := b.get("GET", "/api/v1/configmaps", "", "Accept", strings.Replace(accept, "json", "vnd.kubernetes.protobuf", 1)); code != 406 {
			b.Errorf("in protobuf: %d %s", code, text)
		}
		if code, text := b.get("GET", "/api/v1/configmaps", "", "Accept", strings.Replace(accept, "Table", "Picture", 1)); code != 406 {
			b.Errorf("as a picture: %d %s", code, text)
		}
	})
}

func TestWatchOfATableNamesItsColumnsOnce(t *testing.T) {
	inBubble(t, Options{BookmarkInterval: time.Minute}, func(b *bench) {
		b.create("a")
		resp := b.do("GET", "/api/v1/namespaces/default/configmaps?watch=1&allowWatchBookmarks=true", "", "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
		b.relabel("a", "n=1")
		lines := bufio.NewScanner(resp.Body)
		next := func(kind string, want ...string) {
			b.Helper()
			var event struct {
				Type   string
				Object metav1.Table
			}
			if !lines.Scan() || json.Unmarshal(lines.Bytes(), &event) != nil || event.Type != kind {
				b.Fatalf("%s, want %s", lines.Text(), kind)
			}
			b.want(kind, describeTable(event.Object), want...)
			if !strings.Contains(string(event.Object.Rows[0].Object.Raw), `"resourceVersion":"`+event.Object.ResourceVersion) {
				b.Errorf("%s: %s", kind, lines.Text())
			}
		}
		next("ADDED", "Name Age", "a 0s")
		next("MODIFIED", "", "a 0s")
		time.Sleep(61 * time.Second)
		next("BOOKMARK", "", " <unknown>")
		synctest.Wait()
	})
}
