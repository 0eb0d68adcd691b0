package x

import (
	_ "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	_ "k8s.io/kubernetes/pkg/scheduler"
	_ "go.etcd.io/etcd/client/v3"
)
