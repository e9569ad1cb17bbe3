package main

import (
	"archive/tar"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// sums is the file of checksums, as sha256sum -c reads it.
const sums = "SHA256SUMS"

// archive writes the program and what belongs to it. Nothing in it says who built it, or when.
func archive(file, name, source, binary string, at time.Time) (err error) {
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	packed, err := gzip.NewWriterLevel(out, gzip.BestCompression)
	if err != nil {
		return err
	}
	tape := tar.NewWriter(packed)
	for _, part := range []struct {
		path string
		mode int64
	}{{binary, 0o755}, {filepath.Join(source, "LICENSE"), 0o644}, {filepath.Join(source, "README.md"), 0o644}, {filepath.Join(source, "CHANGELOG.md"), 0o644}} {
		content, err := os.ReadFile(part.path)
		if err != nil {
			return err
		}
		head := &tar.Header{Name: name + "/" + filepath.Base(part.path), Mode: part.mode, Size: int64(len(content)), ModTime: at, Format: tar.FormatUSTAR}
		if err := tape.WriteHeader(head); err != nil {
			return err
		}
		if _, err := tape.Write(content); err != nil {
			return err
		}
	}
	return errors.Join(tape.Close(), packed.Close())
}

// component is a module in CycloneDX's words.
type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	PURL       string     `json:"purl"`
	Properties []property `json:"properties,omitempty"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

func componentOf(kind, path, version, sum string) component {
	purl := "pkg:golang/" + strings.ReplaceAll(path, "@", "%40") + "@" + strings.ReplaceAll(version, "+", "%2B")
	c := component{Type: kind, Ref: purl, Name: path, Version: version, PURL: purl}
	if sum != "" {
		c.Properties = []property{{"go:sum", sum}}
	}
	return c
}

// modulesOf reads what a program says it is made of, and makes a list in the form CycloneDX 1.5 of it.
func modulesOf(binary string) (list []byte, version string, err error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, "", fmt.Errorf("what it is made of: %w", err)
	}
	version = info.Main.Version
	if version == "" || version == "(devel)" {
		version = "v0.0.0-devel"
	}
	bom := struct {
		Format   string `json:"bomFormat"`
		Spec     string `json:"specVersion"`
		Version  int    `json:"version"`
		Metadata struct {
			Component  component  `json:"component"`
			Properties []property `json:"properties"`
		} `json:"metadata"`
		Components []component `json:"components"`
	}{Format: "CycloneDX", Spec: "1.5", Version: 1}
	bom.Metadata.Component = componentOf("application", info.Main.Path, version, "")
	for _, s := range info.Settings {
		bom.Metadata.Properties = append(bom.Metadata.Properties, property{"go:" + s.Key, s.Value})
	}
	bom.Components = append(bom.Components, componentOf("library", "std", info.GoVersion, ""))
	for _, m := range info.Deps {
		m = cmp.Or(m.Replace, m)
		bom.Components = append(bom.Components, componentOf("library", m.Path, m.Version, m.Sum))
	}
	list, err = json.MarshalIndent(&bom, "", " ")
	return append(list, '\n'), version, err
}

// writeSums writes the checksums of all files of a folder.
func writeSums(dir string) error {
	files, err := os.ReadDir(dir) // in order of names
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, file := range files {
		f, err := os.Open(filepath.Join(dir, file.Name()))
		if err != nil {
			return err
		}
		h := sha256.New()
		_, err = io.Copy(h, f)
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
		fmt.Fprintf(&text, "%x  %s\n", h.Sum(nil), file.Name())
	}
	return os.WriteFile(filepath.Join(dir, sums), []byte(text.String()), 0o644)
}
