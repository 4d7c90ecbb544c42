package conformance

// Quick ends each case with the first stage that fails.
func Quick(o Options) Options {
	o.quick = true
	return o
}
