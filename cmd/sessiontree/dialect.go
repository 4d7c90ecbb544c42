package main

import "github.com/sessiontree/sessiontree/eventlog"

// dialectFlag is a flag that names a dialect.
type dialectFlag struct{ told *eventlog.Dialect }

func (f *dialectFlag) String() string {
	if f.told == nil {
		return ""
	}
	return f.told.String()
}

// Set implements pflag's Value.
func (f *dialectFlag) Set(name string) error {
	d, err := eventlog.ParseDialect(name)
	if err == nil {
		f.told = &d
	}
	return err
}

// Type implements pflag's Value.
func (f *dialectFlag) Type() string { return "NAME" }

// or is the dialect that the flag names, or another one.
func (f *dialectFlag) or(d eventlog.Dialect) eventlog.Dialect {
	if f.told != nil {
		return *f.told
	}
	return d
}

// basis is what decided a session's dialect.
func basis(m eventlog.Metadata) string {
	if m.DialectBasis == "" {
		return "chosen"
	}
	return m.DialectBasis
}

// dialectText is by which rules a session is answered, and why, for people.
func dialectText(m eventlog.Metadata) string {
	return m.Dialect.String() + " (" + oneLine(basis(m)) + ")"
}

// dialectNote says of a file by which rules it was read: it does not say who wrote
// it. A session in a database has its dialect for good.
func (c *cli) dialectNote(s *source) {
	if s.path != "" {
		c.out.line(c.out.paint(dim, "dialect "+dialectText(s.meta)))
	}
}
