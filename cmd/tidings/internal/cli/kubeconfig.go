package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// kubeconfig is a file that lets kubectl and others find a server of this program.
type kubeconfig struct {
	path string
	// directory was made for it and goes with it; "" is a file that the user has named,
	// which stays.
	directory string
}

// kubeconfigName is what cluster, context and user are called in it.
const kubeconfigName = "tidings"

// kubeconfigToken is sent as the credentials. The servers ask for none, but kubectl asks
// its user where a kubeconfig has none.
const kubeconfigToken = "none-needed"

// writeKubeconfig writes a kubeconfig of a server to a path, or, where that is "", to a
// new directory. It overwrites nothing but what it has written itself before.
func writeKubeconfig(path, server, namespace string) (*kubeconfig, error) {
	k := &kubeconfig{path: path}
	if path == "" {
		var err error
		if k.directory, err = os.MkdirTemp("", "tidings-"); err != nil {
			return nil, fmt.Errorf("no directory for a kubeconfig can be made: %w: name a file with --write-kubeconfig", err)
		}
		k.path = filepath.Join(k.directory, "kubeconfig")
	}
	if absolute, err := filepath.Abs(k.path); err == nil {
		k.path = absolute // another terminal is somewhere else
	}
	config := clientcmdapi.NewConfig()
	config.Clusters[kubeconfigName] = &clientcmdapi.Cluster{Server: server}
	config.AuthInfos[kubeconfigName] = &clientcmdapi.AuthInfo{Token: kubeconfigToken}
	config.Contexts[kubeconfigName] = &clientcmdapi.Context{Cluster: kubeconfigName, AuthInfo: kubeconfigName, Namespace: namespace}
	config.CurrentContext = kubeconfigName
	err := claimKubeconfig(path)
	if err == nil {
		if err = clientcmd.WriteToFile(*config, k.path); err != nil {
			err = fmt.Errorf("the kubeconfig cannot be written: %w: name another file with --write-kubeconfig", err)
		}
	}
	if err != nil {
		return nil, errors.Join(err, k.remove())
	}
	return k, nil
}

// claimKubeconfig refuses a file that somebody else has written; "" is a new one.
func claimKubeconfig(path string) error {
	if path == "" {
		return nil
	}
	present, err := clientcmd.LoadFromFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && len(present.Clusters) == 1 && len(present.Contexts) == 1 && len(present.AuthInfos) == 1 {
		if user := present.AuthInfos[kubeconfigName]; user != nil && user.Token == kubeconfigToken {
			return nil
		}
	}
	return fmt.Errorf("%s exists and is not one that tidings has written: name another file with --write-kubeconfig", path)
}

// quoted returns the path as a shell takes it.
func (k *kubeconfig) quoted() string { return shellQuoted(k.path) }

// plainWord are the characters of a word that a shell takes as it is.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:@%+=,-]+$`)

func shellQuoted(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// remove takes the file away if the user did not name it.
func (k *kubeconfig) remove() error {
	if k.directory == "" {
		return nil
	}
	return os.RemoveAll(k.directory)
}
