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

	"github.com/tidings-go/tidings/apisim"
)

const (
	// kubeconfigName is the name of the cluster, and of a context and its user.
	kubeconfigName = "tidings"
	// kubeconfigToken is the token. The servers require none, but without a token kubectl
	// asks for a user name.
	kubeconfigToken = "none-needed"
	// madeTokenPrefix is the prefix of the tokens that this program makes.
	madeTokenPrefix = "tidings-"
)

// clientConfig returns the kubeconfig of the server. Each of its users has a context of the same
// name; the first one is the current one.
func (s *server) clientConfig(namespace string) *clientcmdapi.Config {
	users := s.users
	if len(users) == 0 {
		users = []apisim.User{{Name: kubeconfigName, Token: kubeconfigToken}}
	}
	config := clientcmdapi.NewConfig()
	config.CurrentContext = users[0].Name
	config.Clusters[kubeconfigName] = &clientcmdapi.Cluster{
		Server: s.local, CertificateAuthorityData: s.authority,
	}
	for _, user := range users {
		config.AuthInfos[user.Name] = &clientcmdapi.AuthInfo{Token: user.Token}
		config.Contexts[user.Name] = &clientcmdapi.Context{
			Cluster: kubeconfigName, AuthInfo: user.Name, Namespace: namespace,
		}
	}
	return config
}

// writeKubeconfig writes the kubeconfig to a path, or to a temporary file for "".
func (s *server) writeKubeconfig(path, namespace string) (err error) {
	if err := checkKubeconfig(path); err != nil {
		return err
	}
	if path == "" {
		if s.temporary, err = os.MkdirTemp("", "tidings-"); err != nil {
			return fmt.Errorf("cannot create a directory for the kubeconfig: %w: name a file with "+
				"--write-kubeconfig", err)
		}
		path = filepath.Join(s.temporary, "kubeconfig")
	}
	// Other terminals have other working directories.
	if s.kubeconfig, err = filepath.Abs(path); err == nil {
		target := s.kubeconfig
		if linked, err := filepath.EvalSymlinks(target); err == nil {
			target = linked
		}
		err = replaceFile(target, func(path string) error {
			return clientcmd.WriteToFile(*s.clientConfig(namespace), path)
		})
	}
	if err != nil {
		err = fmt.Errorf("cannot write the kubeconfig: %w: name another file with --write-kubeconfig", err)
	}
	return err
}

// replaceFile writes a file under another name and renames it, so that readers never read a part of it.
func replaceFile(path string, write func(path string) error) error {
	partial := fmt.Sprintf("%s.partial-%d", path, os.Getpid())
	err := write(partial)
	if err == nil {
		err = os.Rename(partial, path)
	}
	if err != nil {
		os.Remove(partial) //nolint:errcheck // it may not exist
	}
	return err
}

// checkKubeconfig returns an error if the path is that of a file that this program has not written.
func checkKubeconfig(path string) error {
	present, err := clientcmd.LoadFromFile(path)
	if path == "" || errors.Is(err, fs.ErrNotExist) || err == nil && isOurs(present) {
		return nil
	}
	return fmt.Errorf("%s exists and is no kubeconfig of tidings: name another file with "+
		"--write-kubeconfig", path)
}

func isOurs(config *clientcmdapi.Config) bool {
	user := config.AuthInfos[kubeconfigName]
	return len(config.Clusters) == 1 && config.Clusters[kubeconfigName] != nil &&
		len(config.Contexts) == len(config.AuthInfos) && user != nil &&
		(user.Token == kubeconfigToken || strings.HasPrefix(user.Token, madeTokenPrefix))
}

// plainWord matches words that need no quotes in a shell.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:@%+=,-]+$`)

func shellQuoted(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
