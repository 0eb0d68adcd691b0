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

// kubeconfig is the kubeconfig of a server of this program.
type kubeconfig struct {
	path string
	// directory is the temporary directory of the file, "" if the user has named the file.
	directory string
}

const (
	// kubeconfigName is the name of the cluster, the context and the user.
	kubeconfigName = "tidings"
	// kubeconfigToken is the token. The servers require none, but without one kubectl asks for a
	// user name.
	kubeconfigToken = "none-needed"
)

// writeKubeconfig writes the kubeconfig of a server to a path, or to a temporary file for "".
func writeKubeconfig(path, server, namespace string) (*kubeconfig, error) {
	if err := checkKubeconfig(path); err != nil {
		return nil, err
	}
	k := &kubeconfig{path: path}
	if path == "" {
		var err error
		if k.directory, err = os.MkdirTemp("", "tidings-"); err != nil {
			return nil, fmt.Errorf("cannot create a directory for the kubeconfig: %w: name a file "+
				"with --write-kubeconfig", err)
		}
		k.path = filepath.Join(k.directory, "kubeconfig")
	}
	if absolute, err := filepath.Abs(k.path); err == nil {
		k.path = absolute // another terminal has another working directory
	}
	config := clientcmdapi.NewConfig()
	config.Clusters[kubeconfigName] = &clientcmdapi.Cluster{Server: server}
	config.AuthInfos[kubeconfigName] = &clientcmdapi.AuthInfo{Token: kubeconfigToken}
	config.Contexts[kubeconfigName] = &clientcmdapi.Context{
		Cluster: kubeconfigName, AuthInfo: kubeconfigName, Namespace: namespace,
	}
	config.CurrentContext = kubeconfigName
	if err := clientcmd.WriteToFile(*config, k.path); err != nil {
		return nil, errors.Join(
			fmt.Errorf("cannot write the kubeconfig: %w: name another file with "+
				"--write-kubeconfig", err), k.remove())
	}
	return k, nil
}

// checkKubeconfig returns an error for a path of a file that this program has not written.
func checkKubeconfig(path string) error {
	if path == "" {
		return nil
	}
	present, err := clientcmd.LoadFromFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && len(present.Clusters) == 1 && len(present.Contexts) == 1 &&
		len(present.AuthInfos) == 1 {
		if user := present.AuthInfos[kubeconfigName]; user != nil && user.Token == kubeconfigToken {
			return nil
		}
	}
	return fmt.Errorf("%s exists and is no kubeconfig of tidings: name another file with "+
		"--write-kubeconfig", path)
}

// plainWord matches words that a shell takes literally.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:@%+=,-]+$`)

func shellQuoted(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// remove removes a temporary file.
func (k *kubeconfig) remove() error {
	if k.directory == "" {
		return nil
	}
	return os.RemoveAll(k.directory)
}
