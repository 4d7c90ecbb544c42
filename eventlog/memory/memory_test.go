package memory_test

import (
	"testing"

	"github.com/sessiontree/sessiontree/eventlog/conformance"
	"github.com/sessiontree/sessiontree/eventlog/conformance/backends"
)

func TestConformance(t *testing.T) { conformance.Test(t, backends.Memory()) }
