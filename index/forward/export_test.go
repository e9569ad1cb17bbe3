package forward

// Terms returns the terms of an object and their record; both are zero where there is no such object.
func (c *Column) Terms(id uint32) (Record, Row) {
	tile, local, ok := c.place(id)
	if !ok || c.terms == nil {
		return Record{}, Row{}
	}
	t := &c.terms[tile]
	return t.Records[local], t.Row(&t.Records[local])
}
