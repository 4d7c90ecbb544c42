package bench_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/bench"
	"github.com/sessiontree/sessiontree/bench/stats"
	"github.com/sessiontree/sessiontree/eventlog"
)

func rowOf(operation string, value, low, high float64) bench.Row {
	return bench.Row{Operation: operation, Backend: "sqlite", Shape: "chain", Size: 100, Unit: bench.Nanos, Samples: []float64{value}, Value: stats.Estimate{Median: value, Low: low, High: high}}
}

func TestCompareJudgesByTheIntervals(t *testing.T) {
	before := &bench.Result{Rows: []bench.Row{rowOf("same", 100, 90, 110), rowOf("worse", 100, 90, 110), rowOf("better", 100, 90, 110), rowOf("unsure", 100, 80, 130), rowOf("gone", 1, 1, 1), rowOf("ratio", 100, 90, 110), rowOf("zero", 0, 0, 0)}}
	after := &bench.Result{Rows: []bench.Row{rowOf("same", 109, 100, 112), rowOf("worse", 130, 115, 140), rowOf("better", 70, 60, 80), rowOf("unsure", 125, 120, 150), rowOf("new", 1, 1, 1), rowOf("ratio", 900, 890, 910), rowOf("zero", 0, 0, 0)}}
	before.Rows[5].Ratio, after.Rows[5].Ratio = &stats.Estimate{Median: 2, Low: 1.9, High: 2.1}, &stats.Estimate{Median: 2.05, Low: 2, High: 2.1}
	changes, err := bench.Compare(before, after)
	require.NoError(t, err)
	got := map[string]string{}
	for _, c := range changes {
		got[c.Operation] = string(c.Verdict) + " " + c.Of
	}
	assert.Equal(t, map[string]string{"same": "same value", "worse": "worse value", "better": "better value", "unsure": "unsure value", "ratio": "same ratio", "zero": "same value"}, got)
}

func TestCompareRefusesOtherSeeds(t *testing.T) {
	_, err := bench.Compare(&bench.Result{Seed: 1}, &bench.Result{Seed: 2})
	assert.ErrorIs(t, err, eventlog.ErrInvalidArgument)
}

func TestAResultIsReadAsItWasWritten(t *testing.T) {
	c := small(t)
	c.Shapes, c.Sizes, c.Operations = []string{"chain"}, []int{100, 200}, []string{"branch", "disk"}
	r, err := bench.Run(ctx, c)
	require.NoError(t, err)
	text, err := json.Marshal(r)
	require.NoError(t, err)
	again, err := bench.ReadResult(bytes.NewReader(text))
	require.NoError(t, err)
	assert.Equal(t, r, again)
	assert.True(t, bench.SameMachine(r, again))
	for _, wrong := range []string{"", "{", `{"rows":[{}]}`, `{"figures":[]}`, "[]"} {
		_, err := bench.ReadResult(strings.NewReader(wrong))
		assert.ErrorIs(t, err, eventlog.ErrInvalidArgument, "%q", wrong)
	}
}
