package dedup

import (
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// A churning population replaces its pods as a cluster does.
type churning struct {
	*corpus
	workloads []*workload
	data      [][]byte // of the pod in each place
	reports   int
}

func newChurning(workloads, replicas int) *churning {
	p := &churning{corpus: newCorpus(11, replicas)}
	for i := range workloads {
		p.workloads = append(p.workloads, p.workload(i))
	}
	p.data = make([][]byte, workloads*replicas)
	for i := range p.data {
		p.replace(i)
	}
	return p
}

// replace puts a new pod of the same workload into a place.
func (p *churning) replace(i int) { p.data[i] = encode(p.pod(p.workloads[i/p.replicas])) }

// report has the pod in a place report its status.
func (p *churning) report(t *testing.T, i int) {
	pod := decodedPod(t, p.data[i])
	p.reports++
	reportPod(pod, p.reports)
	p.data[i] = encode(pod.(*corev1.Pod))
}

// day has a day go by: a tenth of the workloads are rolled out anew, a tenth of the other
// pods move, and the rest report.
func (p *churning) day(t *testing.T, day int) {
	for w := range p.workloads {
		rollout := p.random.IntN(10) == 0
		if rollout {
			p.workloads[w] = p.workload(w + (day+1)*len(p.workloads))
		}
		for i := w * p.replicas; i < (w+1)*p.replicas; i++ {
			if rollout || p.random.IntN(10) == 0 {
				p.replace(i)
			} else {
				p.report(t, i)
			}
		}
	}
}

// checkTable checks that a table has room for what is new: always some, and after a week
// plenty.
func checkTable(t *testing.T, s TableStats, day int) {
	t.Helper()
	if s.Bytes > s.Budget || s.Refused > 0 || day > 7 && s.Bytes > s.Budget*2/3 {
		t.Errorf("day %d: %+v: there is little room left, or something was refused", day, s)
	}
}

// TestWeeksOfChurn lets a population churn for six weeks, in which each pod is replaced
// several times, and updated every day. The table always has room for
// what is new. In the end the population may not take more memory than if it had just been
// decoded, but for a sixth, and the table may not have outgrown it.
func TestWeeksOfChurn(t *testing.T) {
	p := newChurning(40, 20)
	decode := func(d *Decoder, into []*corev1.Pod, i int) {
		into[i] = &corev1.Pod{}
		if err := d.Unmarshal(p.data[i], into[i]); err != nil {
			t.Fatal(err)
		}
	}
	table := new(Table)
	d := NewDecoder(table, &corev1.Pod{}, ShareAll)
	pods := make([]*corev1.Pod, len(p.data))
	for i := range p.data {
		decode(d, pods, i)
	}
	first := table.Stats()
	for day := range 6 * 7 {
		p.day(t, day)
		for i := range p.data {
			decode(d, pods, i)
		}
		runtime.GC()
		checkTable(t, table.Stats(), day)
	}
	last := table.Stats()
	if last.Forgotten < int64(first.Values) {
		t.Errorf("%+v: little was forgotten, of at first %d values", last, first.Values)
	}

	withAll, _ := memory()
	runtime.KeepAlive(d)
	runtime.KeepAlive(pods)
	d, table, pods = nil, nil, make([]*corev1.Pod, len(p.data))
	without, _ := memory()
	d = NewDecoder(new(Table), &corev1.Pod{}, ShareAll)
	for i := range p.data {
		decode(d, pods, i)
	}
	fresh, _ := memory()
	runtime.KeepAlive(d)
	runtime.KeepAlive(pods)
	runtime.KeepAlive(p)
	took, takes := float64(withAll-without), float64(fresh-without)
	t.Logf("%.0f bytes per pod, decoded anew %.0f; %+v", took/float64(len(pods)), takes/float64(len(pods)), last)
	if took > takes*7/6 {
		t.Errorf("after weeks the population takes %.0f bytes, decoded anew %.0f", took, takes)
	}
	if float64(last.Bytes) > took/8 {
		t.Errorf("%+v: that is over an eighth of the population's %.0f bytes", last, took)
	}
}
