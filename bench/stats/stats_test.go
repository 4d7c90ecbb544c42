package stats_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/sessiontree/sessiontree/bench/stats"
)

func TestQuantilesLieBetweenTheValues(t *testing.T) {
	values := []float64{40, 10, 30, 20}
	for q, want := range map[float64]float64{0: 10, 0.5: 25, 0.75: 32.5, 1: 40} {
		assert.InDelta(t, want, stats.Quantile(values, q), 1e-9, "quantile %v", q)
	}
	assert.Equal(t, []float64{40, 10, 30, 20}, values, "the values are left as they were")
	assert.True(t, math.IsNaN(stats.Quantile(nil, 0.5)))
}

func TestTheIntervalOfAMedianShrinksWithTheRootOfTheSample(t *testing.T) {
	uniform := func(n int) (values []float64) {
		for i := range n {
			values = append(values, float64(i)/float64(n-1))
		}
		return values
	}
	assert.Equal(t, stats.Estimate{Median: 0.5, Low: 0, High: 1}, stats.Median(uniform(3)))
	small, big := stats.Median(uniform(101)), stats.Median(uniform(10_001))
	assert.InDelta(t, 0.5, small.Median, 1e-9)
	assert.InDelta(t, 0.098, small.High-small.Median, 0.02)
	assert.InDelta(t, 0.0098, big.High-big.Median, 0.001)
	assert.True(t, small.Wide(0.1))
	assert.False(t, big.Wide(0.1))
}

func TestRatiosArePaired(t *testing.T) {
	assert.Equal(t, []float64{2, 2, 2}, stats.Ratios([]float64{2, 200, 20}, []float64{1, 100, 10}))
}

func TestExponents(t *testing.T) {
	sizes := []float64{1e3, 1e4, 1e5, 1e6}
	for want, cost := range map[float64]func(n float64) float64{
		0:   func(float64) float64 { return 180 },
		1:   func(n float64) float64 { return 0.9 * n },
		2:   func(n float64) float64 { return n * n / 7 },
		0.5: math.Sqrt,
	} {
		var costs []float64
		for _, n := range sizes {
			costs = append(costs, cost(n))
		}
		e, ok := stats.Exponent(sizes, costs)
		assert.True(t, ok)
		assert.InDelta(t, want, e, 1e-9)
	}
	_, ok := stats.Exponent([]float64{5, 5}, []float64{1, 2})
	assert.False(t, ok, "one size has no slope")
	_, ok = stats.Exponent([]float64{1, 2}, []float64{0, 2})
	assert.False(t, ok, "zero has no logarithm")
}
