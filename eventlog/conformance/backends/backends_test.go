package backends_test

import (
	"testing"

	"github.com/sessiontree/sessiontree/eventlog/conformance"
	"github.com/sessiontree/sessiontree/eventlog/conformance/backends"
)

func TestJSONL(t *testing.T) { conformance.Test(t, backends.JSONL()) }
