package objects

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Instances is the number of databases of a workload: a hundred workloads have 2,000.
const Instances = 20

// Database is an object of a custom resource of about 5 KB in JSON, with parts that are common in
// those of operators: a template of pods, references, conditions. Each Type makes a Go type of its
// own.
type Database[Type any] struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              DatabaseSpec   `json:"spec"`
	Status            DatabaseStatus `json:"status"`
}

// DatabaseSpec is the desired state of a database.
type DatabaseSpec struct {
	Class      string                 `json:"class"`
	Host       string                 `json:"host"`
	Replicas   *int32                 `json:"replicas,omitempty"`
	Paused     bool                   `json:"paused,omitempty"`
	Selector   *metav1.LabelSelector  `json:"selector,omitempty"`
	Template   corev1.PodTemplateSpec `json:"template"`
	Storage    DatabaseStorage        `json:"storage"`
	References []DatabaseReference    `json:"references,omitempty"`
	Parameters []DatabaseParameter    `json:"parameters,omitempty"`
}

// DatabaseStorage is the storage of a database.
type DatabaseStorage struct {
	Size        resource.Quantity                   `json:"size"`
	ClassName   *string                             `json:"className,omitempty"`
	AccessModes []corev1.PersistentVolumeAccessMode `json:"accessModes,omitempty"`
}

// DatabaseReference names another object.
type DatabaseReference struct {
	APIGroup  string `json:"apiGroup,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Key       string `json:"key,omitempty"`
}

// DatabaseParameter is a setting.
type DatabaseParameter struct {
	Name  string `json:"name"`
	Value string `json:"value,omitempty"`
}

// DatabaseStatus is the observed state of a database.
type DatabaseStatus struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Phase              string             `json:"phase,omitempty"`
	Endpoint           string             `json:"endpoint,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
	Replicas           []DatabaseReplica  `json:"replicas,omitempty"`
}

// DatabaseReplica is a running replica.
type DatabaseReplica struct {
	Name  string       `json:"name"`
	Node  string       `json:"node"`
	Ready bool         `json:"ready"`
	Since *metav1.Time `json:"since,omitempty"`
}

// DatabaseList is a list of databases.
type DatabaseList[Type any] struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []Database[Type] `json:"items"`
}

// DeepCopyObject returns a copy.
func (d *Database[Type]) DeepCopyObject() runtime.Object {
	out := new(Database[Type])
	d.deepCopyInto(out)
	return out
}

func (d *Database[Type]) deepCopyInto(out *Database[Type]) {
	*out = *d
	d.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	d.Spec.deepCopyInto(&out.Spec)
	d.Status.deepCopyInto(&out.Status)
}

func (s *DatabaseSpec) deepCopyInto(out *DatabaseSpec) {
	if s.Replicas != nil {
		out.Replicas = new(*s.Replicas)
	}
	out.Selector = s.Selector.DeepCopy()
	s.Template.DeepCopyInto(&out.Template)
	out.Storage.Size = s.Storage.Size.DeepCopy()
	if s.Storage.ClassName != nil {
		out.Storage.ClassName = new(*s.Storage.ClassName)
	}
	out.Storage.AccessModes = append(s.Storage.AccessModes[:0:0], s.Storage.AccessModes...)
	out.References = append(s.References[:0:0], s.References...)
	out.Parameters = append(s.Parameters[:0:0], s.Parameters...)
}

func (s *DatabaseStatus) deepCopyInto(out *DatabaseStatus) {
	out.Conditions = append(s.Conditions[:0:0], s.Conditions...)
	for i := range s.Conditions {
		s.Conditions[i].DeepCopyInto(&out.Conditions[i])
	}
	out.Replicas = append(s.Replicas[:0:0], s.Replicas...)
	for i := range s.Replicas {
		out.Replicas[i].Since = s.Replicas[i].Since.DeepCopy()
	}
}

// DeepCopyObject returns a copy.
func (l *DatabaseList[Type]) DeepCopyObject() runtime.Object {
	out := &DatabaseList[Type]{TypeMeta: l.TypeMeta}
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = make([]Database[Type], len(l.Items))
	for i := range l.Items {
		l.Items[i].deepCopyInto(&out.Items[i])
	}
	return out
}

// DatabaseTypes is the number of Go types of databases.
const DatabaseTypes = 20

// databaseType is one of them.
type databaseType struct {
	empty, list runtime.Object
	// database returns the database of a number. Its workload is among those from first on.
	database func(kind string, first, number int) Object
}

var databaseTypes = [DatabaseTypes]databaseType{
	typed[[0]byte](), typed[[1]byte](), typed[[2]byte](), typed[[3]byte](), typed[[4]byte](),
	typed[[5]byte](), typed[[6]byte](), typed[[7]byte](), typed[[8]byte](), typed[[9]byte](),
	typed[[10]byte](), typed[[11]byte](), typed[[12]byte](), typed[[13]byte](), typed[[14]byte](),
	typed[[15]byte](), typed[[16]byte](), typed[[17]byte](), typed[[18]byte](), typed[[19]byte](),
}

func typed[Type any]() databaseType {
	return databaseType{&Database[Type]{}, &DatabaseList[Type]{}, newDatabase[Type]}
}

func newDatabase[Type any](kind string, first, number int) Object {
	w := workloadOf(first + number/Instances)
	r := randomOf(kind, number)
	d := &Database[Type]{}
	d.APIVersion, d.Kind = customGroup+"/v1", kind
	d.Namespace, d.Name = w.namespace, fmt.Sprintf("%s-%s%d", w.name, r.suffix(5), number%Instances)
	d.UID, d.ResourceVersion, d.Generation = r.uid(), Version(number), int64(1+r.IntN(20))
	d.CreationTimestamp = r.time()
	d.Labels = w.labels()
	d.Annotations = map[string]string{"shop.example.com/revision": w.hash}
	d.Finalizers = []string{"shop.example.com/protection"}
	owner := w.set
	owner.APIVersion, owner.Kind, owner.Name = customGroup+"/v1", "DatabaseClass", w.name
	d.OwnerReferences = []metav1.OwnerReference{owner}
	managers := template().widget.DeepCopy().GetManagedFields()
	d.ManagedFields = managed(managers, d.CreationTimestamp, 9)
	d.Spec = w.databaseSpec(d.Name)
	d.Status = w.databaseStatus(r, d.ObjectMeta, number)
	return d
}

func (w workload) databaseSpec(name string) DatabaseSpec {
	spec := DatabaseSpec{
		Class: "standard", Host: name + ".shop.example.com", Replicas: new(int32(2)),
		Selector: w.selector(),
		Storage: DatabaseStorage{
			Size: resource.MustParse("20Gi"), ClassName: new("fast"),
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		},
		References: []DatabaseReference{
			{Kind: "Secret", Name: w.name + "-credentials", Key: "password"},
			{Kind: "ConfigMap", Name: w.name},
			{APIGroup: "cert.example.com", Kind: "Certificate", Namespace: "certificates",
				Name: w.name + "-tls"},
			{APIGroup: "backup.example.com", Kind: "Bucket", Namespace: "backups",
				Name: w.namespace},
		},
		Parameters: []DatabaseParameter{
			{"database", w.name}, {"max_connections", "200"}, {"shared_buffers", "128MB"},
			{"log_min_duration", "250ms"}, {"host", name},
		},
	}
	spec.Template.Labels = w.labels()
	spec.Template.Spec = w.spec("token")
	spec.Template.Spec.Containers = spec.Template.Spec.Containers[:1]
	spec.Template.Spec.Volumes, spec.Template.Spec.Tolerations = nil, nil
	spec.Template.Spec.Containers[0].ReadinessProbe = nil
	return spec
}

func (w workload) databaseStatus(r random, m metav1.ObjectMeta, number int) DatabaseStatus {
	status := DatabaseStatus{
		ObservedGeneration: m.Generation, Phase: "Ready", Endpoint: ip(number) + ":5432",
	}
	for i, name := range []string{"Available", "Progressing", "Degraded"} {
		status.Conditions = append(status.Conditions, metav1.Condition{
			Type: name, Status: metav1.ConditionTrue, ObservedGeneration: m.Generation,
			LastTransitionTime: after(m.CreationTimestamp, 5*i),
			Reason:             "AsExpected", Message: "all is as the specification says",
		})
	}
	for i := range 2 {
		status.Replicas = append(status.Replicas, DatabaseReplica{
			Name: fmt.Sprintf("%s-%d", m.Name, i), Node: Node(r.IntN(1000)), Ready: true,
			Since: new(after(m.CreationTimestamp, 7)),
		})
	}
	return status
}
