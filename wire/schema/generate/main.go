// Generate writes the documents of package schema: generate DOCS writes DOCS/protocol/*.json and the tables of DOCS/protocol.md.
package main

import (
	"log"
	"os"
	"path/filepath"

	"github.com/geniemq/geniemq/wire/schema"
)

func main() {
	log.SetFlags(0)
	docs := os.Args[1]
	for name, text := range schema.Files() {
		write(filepath.Join(docs, "protocol", name), text)
	}
	path := filepath.Join(docs, "protocol.md")
	page, err := os.ReadFile(path)
	if err != nil {
		log.Fatal(err)
	}
	filled, err := schema.Fill(string(page))
	if err != nil {
		log.Fatalf("%s: %v", path, err)
	}
	write(path, []byte(filled))
}

func write(path string, text []byte) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o644); err != nil {
		log.Fatal(err)
	}
}
