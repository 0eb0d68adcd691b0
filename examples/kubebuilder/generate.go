// Package kubebuilder has the commands that generate files of this project from markers: the
// copies of objects, the definition and the role, as `make generate manifests` of a scaffold does.
package kubebuilder

//go:generate go tool controller-gen object rbac:roleName=manager-role crd paths=./... output:crd:dir=config/crd/bases output:rbac:dir=config/rbac
