package sqlitestoretest_test

import (
	"testing"

	"github.com/sessiontree/sessiontree/eventlog/conformance"
	"github.com/sessiontree/sessiontree/sqlitestore/sqlitestoretest"
)

func TestTheStoreConforms(t *testing.T) { conformance.Test(t, sqlitestoretest.Backend()) }
