package apiserver

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// Backup copies all data. It returns a function that restores the copy and may be called more than
// once. Both kill the server, as [Server.Kill] does, and start it again at the same address. After
// a restore, resource versions continue from those of the backup. Clients then see known versions
// again, as after a restore of etcd without --bump-revision. Kill servers of AddInstance before a
// restore. Close deletes backups.
func (s *Server) Backup(ctx context.Context) (restore func(context.Context) error, err error) {
	if s.storage != nil {
		return nil, errors.New("apiserver: the server has no etcd: back up the one that has")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.backups++
	backup := s.path(fmt.Sprint("backup-", s.backups))
	if err := s.replaceLocked(ctx, backup, s.path("data")); err != nil {
		return nil, fmt.Errorf("apiserver: back up: %w", err)
	}
	return func(ctx context.Context) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if err := s.replaceLocked(ctx, s.path("data"), backup); err != nil {
			return fmt.Errorf("apiserver: restore a backup: %w", err)
		}
		return nil
	}, nil
}

// replaceLocked replaces a directory by a copy of another one while the server does not run.
func (s *Server) replaceLocked(ctx context.Context, directory, by string) error {
	if err := s.killLocked(); err != nil {
		return err
	}
	copied := errors.Join(os.RemoveAll(directory), os.CopyFS(directory, os.DirFS(by)))
	if copied != nil {
		return copied
	}
	return s.restartLocked(ctx)
}
