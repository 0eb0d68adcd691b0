// Package v1 is version v1 of the API group web.example.com: [Website] and [WebsiteList].
//
// The types are written by hand, with the deep copies that the Kubernetes machinery asks for, and
// [AddToScheme] makes a scheme know them. websites.yaml, at the root of the example, tells a
// cluster of them.
package v1
