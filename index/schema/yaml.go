package schema

import (
	"encoding/base64"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// Names is a list of names; in YAML one may stand by itself.
type Names []string

// UnmarshalYAML reads a name or a list of names.
func (n *Names) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode {
		*n = Names{node.Value}
		return nil
	}
	var names []string
	if err := node.Decode(&names); err != nil {
		return err
	}
	*n = names
	return nil
}

// Bytes are bytes; in YAML as base64.
type Bytes []byte

// UnmarshalYAML reads base64.
func (b *Bytes) UnmarshalYAML(node *yaml.Node) error {
	data, err := base64.StdEncoding.DecodeString(node.Value)
	if err != nil || node.Kind != yaml.ScalarNode {
		return &yaml.TypeError{Errors: []string{fmt.Sprintf("line %d: not base64: leave out what building fills in", node.Line)}}
	}
	*b = nil
	if len(data) > 0 {
		*b = data
	}
	return nil
}

// MarshalYAML writes base64.
func (b Bytes) MarshalYAML() (any, error) { return base64.StdEncoding.EncodeToString(b), nil }
