package index

// Name is the name of the schema.
func (x *Index) Name() string { return x.schema.Name }
