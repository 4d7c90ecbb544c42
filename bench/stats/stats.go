// Package stats has the few statistics that measurements of times need: order
// statistics, since times are skewed and have outliers, and the slope of a line
// on logarithmic axes.
package stats

import (
	"math"
	"slices"
)

// Quantile is the value below which the part q of the values lies, between two
// values in proportion; NaN of none.
func Quantile(values []float64, q float64) float64 {
	return quantile(slices.Sorted(slices.Values(values)), q)
}

func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	at := q * float64(len(sorted)-1)
	low := int(math.Floor(at))
	if low+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[low] + (at-float64(low))*(sorted[low+1]-sorted[low])
}

// Estimate is a median with the interval in which the true one lies with 95%.
type Estimate struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
}

// Median estimates the median without assuming a distribution: the interval is
// between two order statistics, by the normal approximation of the binomial.
// Below six values nothing narrower than all of them can be said.
func Median(values []float64) Estimate {
	sorted := slices.Sorted(slices.Values(values))
	n := float64(len(sorted))
	e := Estimate{Median: quantile(sorted, 0.5)}
	if n == 0 {
		e.Low, e.High = e.Median, e.Median
		return e
	}
	half := 1.96 * math.Sqrt(n) / 2
	low, high := int(math.Floor(n/2-half)), int(math.Ceil(n/2+half))
	e.Low, e.High = sorted[max(low, 0)], sorted[min(high, len(sorted)-1)]
	return e
}

// Wide says whether the interval reaches farther than the part p of the median
// to either side.
func (e Estimate) Wide(p float64) bool {
	return e.High > e.Median*(1+p) || e.Low < e.Median*(1-p)
}

// Ratios divides pair by pair: what both sides of a pair have in common, such as
// a busy machine, falls out.
func Ratios(values, by []float64) []float64 {
	ratios := make([]float64, min(len(values), len(by)))
	for i := range ratios {
		ratios[i] = values[i] / by[i]
	}
	return ratios
}

// Exponent fits y = c · x^e by least squares on logarithmic axes and gives e. It
// is not ok for fewer than two different x, or values that are not above zero.
func Exponent(x, y []float64) (e float64, ok bool) {
	if len(x) != len(y) {
		return 0, false
	}
	var sx, sy, sxx, sxy float64
	n := float64(len(x))
	for i := range x {
		if x[i] <= 0 || y[i] <= 0 {
			return 0, false
		}
		lx, ly := math.Log(x[i]), math.Log(y[i])
		sx, sy, sxx, sxy = sx+lx, sy+ly, sxx+lx*lx, sxy+lx*ly
	}
	d := n*sxx - sx*sx
	if d < 1e-9 {
		return 0, false
	}
	return (n*sxy - sx*sy) / d, true
}
