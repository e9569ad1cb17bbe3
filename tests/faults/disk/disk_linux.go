// Package disk mounts file systems that can be full without harming anyone.
package disk

import (
	"fmt"
	"os"
	"syscall"
)

// A Disk is a file system of its own under a server's streams, so that it can be full without harming anyone. It is in memory and takes as much of it as it holds.
type Disk struct {
	dir  string
	Full bool
}

const (
	diskName = "geniemq-faults"
	diskRoom = "size=8g"
)

// New mounts one, which root may.
func New(dir string) (*Disk, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if err := syscall.Mount(diskName, dir, "tmpfs", 0, diskRoom); err != nil {
		return nil, fmt.Errorf("mount a file system at %s: %w", dir, err)
	}
	return &Disk{dir: dir}, nil
}

// Fill makes it as large as what is on it: whoever writes on gets ENOSPC. What is removed meanwhile leaves room, until it is called again.
func (d *Disk) Fill() error {
	for {
		var now syscall.Statfs_t
		if err := syscall.Statfs(d.dir, &now); err != nil {
			return fmt.Errorf("look at %s: %w", d.dir, err)
		}
		used := max(1, now.Blocks-now.Bfree) * uint64(now.Bsize)
		err := syscall.Mount(diskName, d.dir, "tmpfs", syscall.MS_REMOUNT, fmt.Sprintf("size=%d", used))
		if err == nil {
			d.Full = true
			return nil
		} else if err != syscall.EINVAL { // more was written meanwhile
			return fmt.Errorf("fill %s: %w", d.dir, err)
		}
	}
}

// Free gives it room again.
func (d *Disk) Free() error {
	if err := syscall.Mount(diskName, d.dir, "tmpfs", syscall.MS_REMOUNT, diskRoom); err != nil {
		return fmt.Errorf("free %s: %w", d.dir, err)
	}
	d.Full = false
	return nil
}

// Remove unmounts it. What is on it is gone, unless keep names a folder for it that is not there.
func (d *Disk) Remove(keep string) error {
	if keep != "" {
		if err := os.CopyFS(keep, os.DirFS(d.dir)); err != nil {
			fmt.Fprintln(os.Stderr, "error: keep the streams:", err)
		}
	}
	return syscall.Unmount(d.dir, syscall.MNT_DETACH)
}
