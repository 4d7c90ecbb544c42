package query

import "github.com/sessiontree/sessiontree/eventlog"

// Spend is what a number of responses cost. All numbers are integers, so that
// parts add up to their total.
type Spend struct {
	Responses             int64
	Input, Output         int64 // tokens
	CacheRead, CacheWrite int64
	Cost                  int64 // billionths of the currency that the host counts in
}

// Tokens are all tokens.
func (s Spend) Tokens() int64 { return s.Input + s.Output + s.CacheRead + s.CacheWrite }

// Money is the cost in the currency that the host counts in (Pi: US dollars).
func (s Spend) Money() float64 { return float64(s.Cost) / eventlog.NanoPerUnit }

// CacheHitRate is the part of all tokens that were sent to the model that it had
// in its cache: 0 to 1, and 0 where none were sent.
func (s Spend) CacheHitRate() float64 {
	sent := s.Input + s.CacheRead + s.CacheWrite
	if sent == 0 {
		return 0
	}
	return float64(s.CacheRead) / float64(sent)
}

// Add adds to the spend.
func (s *Spend) Add(o Spend) {
	s.Responses += o.Responses
	s.Input += o.Input
	s.Output += o.Output
	s.CacheRead += o.CacheRead
	s.CacheWrite += o.CacheWrite
	s.Cost += o.Cost
}

// Split is a spend by what became of it. A response is in one class: the kinds
// come before what became of the branch, so the classes add up to the total.
type Split struct {
	Live          Spend // on the way from a session's leaf to the root, past compactions
	Abandoned     Spend // all other responses: the plans that were given up
	Compaction    Spend // summaries of compactions
	BranchSummary Spend // summaries of branches that were left
}

// Total is the sum of the classes.
func (s Split) Total() Spend {
	t := s.Live
	t.Add(s.Abandoned)
	t.Add(s.Compaction)
	t.Add(s.BranchSummary)
	return t
}

// Add adds to the classes.
func (s *Split) Add(o Split) {
	s.Live.Add(o.Live)
	s.Abandoned.Add(o.Abandoned)
	s.Compaction.Add(o.Compaction)
	s.BranchSummary.Add(o.BranchSummary)
}

// What the view of usage has for a row that counts: one that has no copies counts as
// the way from its session's leaf says.
const (
	countedLive      = 1
	countedAbandoned = 2
	countedByWay     = 3
)

// class is where a response of a kind belongs that counts as the view says.
func (s *Split) class(kind eventlog.BillKind, counted int) *Spend {
	switch {
	case kind == eventlog.BillCompaction:
		return &s.Compaction
	case kind == eventlog.BillBranchSummary:
		return &s.BranchSummary
	case counted == countedAbandoned:
		return &s.Abandoned
	}
	return &s.Live
}
