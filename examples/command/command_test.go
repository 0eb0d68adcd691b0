package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestConfig(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	if _, err := Config("", ""); err == nil || !strings.Contains(err.Error(), "pass --kubeconfig") {
		t.Errorf("without a kubeconfig: %v", err)
	}
	broken := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(broken, []byte("clusters: 7"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Config("", broken); err == nil || !strings.Contains(err.Error(), broken) {
		t.Errorf("with a broken kubeconfig: %v", err)
	}
	config, err := Config("http://127.0.0.1:8001", broken)
	if err != nil || config.Host != "http://127.0.0.1:8001" {
		t.Errorf("with an address: %v, %v", config, err)
	}
}
